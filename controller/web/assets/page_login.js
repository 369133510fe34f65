import {h} from "./dom.js";
import {note, problemNote} from "./ui.js";

export function logInPage(text, logIn) {
  const refusal = h("div", {role: "alert"}, text ? note("idle", text) : null);
  const input = h("input", {id: "token", name: "token", type: "password", required: true, autocomplete: "current-password",
    spellcheck: "false", "aria-describedby": "token-help"});
  const send = h("button", {type: "submit", class: "main"}, "Log in");
  const submit = async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      await logIn(input.value.trim());
    } catch (problem) {
      refusal.replaceChildren(problemNote(problem));
      send.disabled = false;
      input.focus();
    }
  };
  return h("form", {class: "login panel", onsubmit: submit}, h("h1", null, "Log in"),
    h("label", {for: "token"}, "Token of the API"), input,
    h("p", {class: "quiet", id: "token-help"}, "An admin makes one with ", h("code", null, "verger token create NAME --role viewer"),
      ". The token stays in vergerd; this browser keeps a cookie for 12 hours."),
    refusal, h("div", {class: "actions"}, send));
}
