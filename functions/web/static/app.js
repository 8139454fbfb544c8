// Starts the page: signs in, builds its parts and connects them.

import { Chat } from "./chat/chat.js";
import { Conversations } from "./chat/conversations.js";
import { exportConversation } from "./chat/export.js";
import { Scope } from "./chat/scope.js";
import { ScopeLine } from "./chat/scope_line.js";
import { acceptDrops } from "./library/drop.js";
import { Library } from "./library/library.js";
import { ModelNotice } from "./session/model_notice.js";
import { hasKeyInAddress, openSession, takeSessionFromAddress } from "./session/session.js";
import { Api } from "./shared/api.js";
import { byId, el, focusIfLost, setAttribute, setText } from "./shared/dom.js";
import { chooseLanguage, language, LANGUAGES, onLanguage, setLanguage, t } from "./language/i18n.js";
import { loadPart } from "./loading/parts.js";
import { drawIcons, icon } from "./shared/icons.js";
import { errorText, openPart, toast } from "./shared/notices.js";
import { readLink, resolveLink } from "./source/page_link.js";
import { SourcePanel } from "./source/source_panel.js";

const CONVERSATION_LINK = /^#c=([\w-]+)$/;

const ATTACH_DIALOG = new URL("./library/attach_dialog.js", import.meta.url);
const SETTINGS = new URL("./session/settings.js", import.meta.url);
const SIGN_IN_FORM = new URL("./session/sign_in_form.js", import.meta.url);
const TOKEN_FORM = new URL("./session/token_form.js", import.meta.url);

async function main() {
  drawIcons();
  reloadStyles();
  await chooseLanguage();
  listenToLanguage();
  listenToTabs();
  const notice = takeSessionFromAddress();
  addEventListener("hashchange", () => hasKeyInAddress() && location.reload());
  const askForToken = async (...facts) => (await loadPart(TOKEN_FORM)).askForToken(...facts);
  const askToSignIn = async (session) => (await loadPart(SIGN_IN_FORM)).askToSignIn(session, notice);
  const api = new Api({ openSession: () => openSession({ askForToken, askToSignIn }), language });
  const parts = build(api);
  byId("starting").remove();
  start(api, parts);
}

/** Ask again for styles that the platform was too busy to send. */
function reloadStyles() {
  for (const link of document.querySelectorAll("link[rel=stylesheet]")) if (!link.sheet?.cssRules.length) link.href += "?again";
}

function build(api) {
  const scope = new Scope({ api });
  new ScopeLine({ scope });
  const source = new SourcePanel({
    api, onOpenNote: (id) => library.openNote(id), onOpenDocument: (id) => library.openDocument(id), onClose: () => showAddress(chat.conversation),
  });
  const chat = new Chat({
    api, scope,
    onCite: (citation, opener) => source.open(citation, opener),
    onConversation: (id) => {
      showAddress(id);
      byId("export").hidden = !id;
      conversations.setCurrent(id);
      chat.setTitle(conversations.titleOf(id));
    },
    onAnswered: () => conversations.load(),
    onUpload: () => byId("upload-input").click(),
    onSaveAsNote: (address) => library.saveAnswerAsNote(address),
    onOpenNote: (id) => library.openNote(id),
  });
  const conversations = new Conversations({
    api,
    onOpen: (id) => {
      source.close();
      showView("chat");
      chat.open(id);
    },
    onNew: () => {
      source.close();
      showView("chat");
      chat.clear();
    },
    onTitle: (title) => chat.setTitle(title),
  });
  const library = new Library({
    api, scope,
    onCounts: (counts) => chat.setCounts(counts),
    onAsk: () => {
      showView("chat");
      byId("question").focus();
    },
  });
  acceptDrops((files) => {
    showView("library");
    library.add(files);
  });
  byId("attach-open").addEventListener("click", () => openPart(ATTACH_DIALOG, (part) => part.openAttachDialog({ api, scope })));
  byId("settings-open").addEventListener("click", () => openPart(SETTINGS, (part) => part.openSettings({ api })));
  byId("sign-out").addEventListener("click", async () => {
    await api.signOut();
    location.assign(location.pathname); // so that nothing of the signed-out user stays on the page
  });
  byId("export").addEventListener("click", () => exportConversation(api, chat.conversation));
  const follow = () => followAddress({ api, chat, library, source });
  addEventListener("hashchange", follow);
  // Clicking a link to the address already shown fires no hashchange.
  document.addEventListener("click", ({ target }) => target.closest("a.link")?.getAttribute("href") === location.hash && follow());
  return { chat, conversations, library, follow };
}

async function start(api, { chat, conversations, library, follow }) {
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
    showStartError(error, () => start(api, { chat, conversations, library, follow }));
    return;
  }
  follow();
  library.start();
  conversations.load();
  if (matchMedia("(hover: hover)").matches) focusIfLost(byId("question"));
}

/** Open what the address names: a conversation, or a passage of a document or a note in the source panel. */
async function followAddress({ api, chat, library, source }) {
  const { hash } = location;
  const conversation = CONVERSATION_LINK.exec(hash)?.[1];
  const link = readLink(hash);
  if (!conversation && !link) return;
  if (!(await library.closeNote())) return showAddress(chat.conversation);
  if (conversation) {
    source.close();
    showView("chat");
    if (conversation !== chat.conversation) chat.open(conversation);
    return;
  }
  try {
    const citation = await resolveLink(api, link);
    if (location.hash === hash) source.open(citation, null);
  } catch (error) {
    toast(errorText(error), { kind: "bad" });
    if (location.hash === hash) showAddress(chat.conversation);
  }
}

function showAddress(conversation) {
  history.replaceState(null, "", conversation ? `#c=${conversation}` : location.pathname + location.search);
}

function drawModelHint({ chat, chat_model: model }) {
  setText(byId("model-hint"), chat === "extractive" ? t("model.extractive") : model ? t("model.named", { model }) : "");
}

function showStartError(error, onRetry) {
  const retry = el("button", { type: "button", class: "button", on: { click: onRetry } }, icon("retry"), t("chat.retry"));
  byId("thread").replaceChildren(
    el("div", { class: "fault-box", role: "alert", "data-testid": "start-error" }, icon("alert"), el("p", {}, errorText(error)), retry));
}

function listenToLanguage() {
  const draw = () => setText(byId("language-next"), t("language.next"));
  byId("language").addEventListener("click", () => {
    const next = LANGUAGES[(LANGUAGES.indexOf(language()) + 1) % LANGUAGES.length];
    setLanguage(next, { store: true }).catch((error) => toast(errorText(error), { kind: "bad" }));
  });
  onLanguage(draw);
  draw();
}

/** On narrow screens one view is shown at a time. */
function listenToTabs() {
  for (const tab of document.querySelectorAll(".tab")) tab.addEventListener("click", () => showView(tab.dataset.view));
  showView("chat");
}

function showView(view) {
  byId("shell").dataset.view = view;
  for (const tab of document.querySelectorAll(".tab")) setAttribute(tab, "aria-current", tab.dataset.view === view ? "page" : null);
}

main();
