// Starts the page: signs in, builds its parts and connects them.

import { Chat } from "./chat/chat.js";
import { Conversations } from "./chat/conversations.js";
import { exportConversation } from "./chat/export.js";
import { Scope } from "./chat/scope.js";
import { ScopeLine } from "./chat/scope_line.js";
import { acceptDrops } from "./library/uploads/drop.js";
import { Library } from "./library/library.js";
import { ModelNotice } from "./session/model_notice.js";
import { listenToShortcuts, openShortcuts } from "./session/shortcuts.js";
import { listenToTheme } from "./session/theme.js";
import { hasKeyInAddress, openSession, takeSessionFromAddress } from "./session/session.js";
import { Api } from "./shared/api.js";
import { byId, focusIfLost, setAttribute, setText } from "./shared/dom.js";
import { chooseLanguage, language, LANGUAGES, onLanguage, setLanguage, t } from "./language/i18n.js";
import { loadPart } from "./loading/parts.js";
import { closeDialogs } from "./shared/dialogs.js";
import { drawIcons } from "./shared/icons.js";
import { faultBox, openPart, report, toast } from "./shared/notices.js";
import { listenToPanes, showLibrary, showPane } from "./shared/panes.js";
import { Trail } from "./shared/trail.js";
import { SourceCard } from "./source/card.js";
import { documentAsSource, readLink, resolveLink } from "./source/page_link.js";
import { SourcePanel } from "./source/source_panel.js";

const CONVERSATION_LINK = /^#c=([\w-]+)$/;
const SETTINGS_DIALOG = { kind: "settings" };

const ATTACH_DIALOG = new URL("./library/attach_dialog.js", import.meta.url);
const API_KEYS = new URL("./session/api_keys.js", import.meta.url);
const SETTINGS = new URL("./session/settings.js", import.meta.url);
const SAMPLE = new URL("./sample/sample_document.js", import.meta.url);
const SIGN_IN_FORM = new URL("./session/sign_in_form.js", import.meta.url);
const TOKEN_FORM = new URL("./session/token_form.js", import.meta.url);

async function main() {
  drawIcons();
  reloadStyles();
  await chooseLanguage();
  listenToLanguage();
  listenToTheme();
  listenToPanes();
  const notice = takeSessionFromAddress();
  for (const kind of ["popstate", "hashchange"]) addEventListener(kind, signInAgain);
  const askForToken = async (...facts) => (await loadPart(TOKEN_FORM)).askForToken(...facts);
  const askToSignIn = async (session) => (await loadPart(SIGN_IN_FORM)).askToSignIn(session, notice);
  const api = new Api({ openSession: () => openSession({ askForToken, askToSignIn }), language });
  const parts = build(api);
  byId("starting").remove();
  byId("send").disabled = false; // until now the browser itself would have sent the form, and the question been lost
  start(api, parts);
}

/** The printed address was opened in this tab, where only its last part changes. */
function signInAgain(event) {
  if (!hasKeyInAddress()) return;
  event.stopImmediatePropagation(); // others would remove the key from the address
  location.reload();
}

/** Ask again for styles that the platform was too busy to send. */
function reloadStyles() {
  for (const link of document.querySelectorAll("link[rel=stylesheet]")) if (!link.sheet?.cssRules.length) link.href += "?again";
}

function build(api) {
  const scope = new Scope({ api });
  new ScopeLine({ scope });
  const trail = new Trail({ onMove: (place) => show(parts, place), onLink: () => followAddress(api, parts) });
  const source = new SourcePanel({
    api, onOpenNote: (id) => library.openNote(id), onOpenDocument: (id) => library.openDocument(id), onClose: () => trail.leave("source"),
  });
  const cite = (citation, opener) => {
    trail.visit({ source: citation });
    source.open(citation, opener);
  };
  const chat = new Chat({
    api, scope, card: new SourceCard({ onCite: cite }), onCite: cite,
    onConversation: (id) => {
      byId("export").hidden = !id;
      conversations.setCurrent(id);
      chat.setTitle(conversations.titleOf(id));
    },
    onStarted: (id) => trail.amend({ conversation: id }),
    onAnswered: () => conversations.load(),
    onDrawn: () => source.tint(),
    onUpload: () => byId("upload-input").click(),
    onShowNearest: (question) => (showLibrary(), library.search.showNearest(question)),
    onSample: () => openPart(SAMPLE, (part) => library.add([part.makeSample(language())])),
    onSaveAsNote: (address) => library.saveAnswerAsNote(address),
    onOpenNote: (id) => library.openNote(id),
  });
  const goTo = (conversation) => {
    trail.visit({ conversation, source: null, dialog: null });
    show(parts, { conversation, source: null, dialog: null }, { again: true });
  };
  const conversations = new Conversations({ api, onOpen: goTo, onNew: () => goTo(null), onTitle: (title) => chat.setTitle(title) });
  const library = new Library({
    api, scope,
    onCounts: (counts) => chat.setCounts(counts),
    onAsk: () => {
      showPane("chat");
      byId("question").focus();
    },
    onRead: (document) => cite(documentAsSource(document), null),
    onCite: cite,
    onOpened: (dialog) => trail.visit({ dialog }),
    onClosed: (dialog) => trail.leave("dialog", dialog),
  });
  acceptDrops((files) => {
    showLibrary();
    library.add(files);
  });
  const openSettings = () => {
    trail.visit({ dialog: SETTINGS_DIALOG });
    return openPart(SETTINGS, (part) => part.openSettings({ api, onClose: () => trail.leave("dialog", SETTINGS_DIALOG) }));
  };
  byId("attach-open").addEventListener("click", () => openPart(ATTACH_DIALOG, (part) => part.openAttachDialog({ api, scope })));
  byId("settings-open").addEventListener("click", openSettings);
  byId("keys-open").addEventListener("click", () => openPart(API_KEYS, (part) => part.openKeys({ api })));
  byId("sign-out").addEventListener("click", async () => {
    await api.signOut();
    location.assign(location.pathname); // so that nothing of the signed-out user stays on the page
  });
  byId("export").addEventListener("click", () => exportConversation(api, chat.conversation));
  byId("shortcuts").addEventListener("click", openShortcuts);
  listenToShortcuts({
    "/": () => (showPane("chat"), byId("question").focus()),
    n: () => goTo(null),
    f: () => (showLibrary(), byId("title-filter").focus()),
    u: () => byId("upload-input").click(),
    j: () => chat.stepToMark(1),
    k: () => chat.stepToMark(-1),
  });
  // Clicking a link to the address already shown moves nowhere.
  document.addEventListener("click", ({ target }) => target.closest("a.link")?.getAttribute("href") === location.hash && followAddress(api, parts));
  const parts = { chat, conversations, library, openSettings, source, trail };
  return parts;
}

async function start(api, parts) {
  const { chat, conversations, library, trail } = parts;
  library.start();
  conversations.load();
  try {
    const me = await api.get("/me");
    byId("settings-open").hidden = !me.is_admin;
    if (me.is_admin) new ModelNotice({ api }).load();
    byId("sign-out").hidden = !api.canSignOut;
    chat.extractive = me.chat === "extractive";
    // Deployments that stream from another host name its URL.
    if (/^https?:/.test(me.chat_url ?? "")) chat.address = me.chat_url;
    drawModelHint(me);
    onLanguage(() => drawModelHint(me));
  } catch (error) {
    showStartError(error, () => start(api, parts));
    return;
  }
  trail.start();
  if (matchMedia("(hover: hover)").matches) focusIfLost(byId("question"));
}

/** Show a place: its conversation, its source, its dialog. With `again`, a conversation that is shown already is loaded again. */
async function show({ chat, library, openSettings, source, trail }, { conversation, source: citation, dialog }, { again = false } = {}) {
  if (!(await library.closeNote())) return trail.visit({ conversation: chat.conversation });
  closeDialogs();
  if (again || conversation !== chat.conversation) {
    showPane("chat");
    if (conversation) chat.open(conversation);
    else chat.clear();
  }
  if (citation) source.open(citation, null);
  else source.close();
  if (dialog?.kind === "settings") openSettings();
  else if (dialog?.id) library.open(dialog);
}

/** Open what the address names: a conversation, or a passage of a document or a note in the source panel. */
async function followAddress(api, parts) {
  const { chat, library, source, trail } = parts;
  const { hash } = location;
  const conversation = CONVERSATION_LINK.exec(hash)?.[1];
  const link = readLink(hash);
  trail.amend({ conversation: chat.conversation, source: null, dialog: null, link: hash || null });
  if (!(await library.closeNote())) return trail.amend({ link: null });
  if (conversation) {
    trail.amend({ conversation, link: null });
    return show(parts, { conversation });
  }
  try {
    const citation = link && (await resolveLink(api, link));
    if (location.hash !== hash) return;
    trail.amend({ source: citation, link: citation && hash });
    if (citation) source.open(citation, null);
    else if (hash) toast(t("link.unknown"), { kind: "bad", testid: "link-unknown" });
  } catch (error) {
    report(error, t("failed.link"), () => followAddress(api, parts));
    if (location.hash === hash) trail.amend({ link: null });
  }
}

function drawModelHint({ chat, chat_model: model }) {
  setText(byId("model-hint"), chat === "extractive" ? t("model.extractive") : model ? t("model.named", { model }) : "");
}

function showStartError(error, onRetry) {
  byId("thread").replaceChildren(faultBox(error, { what: t("failed.start"), onRetry, testid: "start-error" }));
}

function listenToLanguage() {
  const draw = () => {
    setText(byId("language-next"), t("language.code"));
    for (const name of ["aria-label", "title"]) setAttribute(byId("language"), name, `${t("language.code")}: ${t("language.next")}`);
  };
  byId("language").addEventListener("click", () => {
    const next = LANGUAGES[(LANGUAGES.indexOf(language()) + 1) % LANGUAGES.length];
    setLanguage(next, { store: true }).catch((error) => report(error, t("failed.language")));
  });
  onLanguage(draw);
  draw();
}

main();
