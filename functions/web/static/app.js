// Starts the page: signs in, builds its parts and lets them speak to each other.

import { Api } from "./api.js";
import { openAttachDialog } from "./attach_dialog.js";
import { Chat } from "./chat.js";
import { Conversations } from "./conversations.js";
import { byId, el, focusIfLost, setAttribute, setText } from "./dom.js";
import { acceptDrops } from "./drop.js";
import { drawIcons, icon } from "./icons.js";
import { chooseLanguage, language, LANGUAGES, onLanguage, setLanguage, t } from "./i18n.js";
import { Library } from "./library.js";
import { inWords } from "./notices.js";
import { Scope } from "./scope.js";
import { openSettings } from "./settings.js";
import { SourcePanel } from "./source_panel.js";
import { askForToken } from "./token_form.js";

const HASH = /^#c=([\w-]+)$/;

function main() {
  drawIcons();
  chooseLanguage();
  listenToLanguage();
  listenToTabs();
  const api = new Api({ askForToken, language });
  const parts = build(api);
  start(api, parts);
}

function build(api) {
  const scope = new Scope();
  const source = new SourcePanel({ api, onOpenNote: (id) => library.openNote(id), onOpenDocument: (id) => library.openDocument(id) });
  const chat = new Chat({
    api, scope,
    onCite: (citation, opener) => source.open(citation, opener),
    onConversation: (id) => {
      history.replaceState(null, "", id ? `#c=${id}` : location.pathname + location.search);
      conversations.setCurrent(id);
      chat.setTitle(conversations.titleOf(id));
    },
    onAnswered: () => conversations.load(),
    onUpload: () => byId("upload-input").click(),
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
  byId("attach-open").addEventListener("click", () => openAttachDialog({ api, scope }));
  byId("settings-open").addEventListener("click", () => openSettings({ api }));
  addEventListener("hashchange", () => conversationInAddress() && chat.open(conversationInAddress()));
  return { chat, conversations, library };
}

async function start(api, { chat, conversations, library }) {
  const asked = conversationInAddress();
  try {
    const me = await api.get("/me");
    byId("settings-open").hidden = !me.is_admin;
    chat.extractive = me.chat === "extractive";
    // Where streaming needs an address of its own, the server names it.
    if (/^https?:/.test(me.chat_url ?? "")) chat.address = me.chat_url;
    drawModelHint(me);
    onLanguage(() => drawModelHint(me));
  } catch (error) {
    showStartError(error, () => start(api, { chat, conversations, library }));
    return;
  }
  if (asked) chat.open(asked);
  library.start();
  conversations.load();
  if (matchMedia("(hover: hover)").matches) focusIfLost(byId("question"));
}

const conversationInAddress = () => HASH.exec(location.hash)?.[1] ?? null;

function drawModelHint({ chat, chat_model: model }) {
  setText(byId("model-hint"), chat === "extractive" ? t("model.extractive") : model ? t("model.named", { model }) : "");
}

function showStartError(error, again) {
  const retry = el("button", { type: "button", class: "button", on: { click: again } }, icon("retry"), t("chat.retry"));
  byId("thread").replaceChildren(
    el("div", { class: "fault-box", role: "alert", "data-testid": "start-error" }, icon("alert"), el("p", {}, inWords(error)), retry));
}

function listenToLanguage() {
  const draw = () => setText(byId("language-next"), t("language.next"));
  byId("language").addEventListener("click", () => {
    setLanguage(LANGUAGES[(LANGUAGES.indexOf(language()) + 1) % LANGUAGES.length], { keep: true });
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
