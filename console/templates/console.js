// Brings an open page up to date, and is all the script there is: without it every page works, and is
// as old as its last load. The server says that something changed, never what; this asks for the
// page's own address again, under the same session, and puts the server's HTML in the place of what
// carries `data-live`. What a person types in, points at or has selected is left alone until they are
// done with it.
"use strict";
{
  const KINDS = ["asks", "lists", "runs"];
  const WAITED_MS = 15_000;
  const CONTROLS = "input:not([type=hidden]), select, textarea";
  const shown = location.origin + location.pathname + location.search;
  const notes = new Map(["held", "away", "ended"].map((name) => [name, document.getElementById(`live-${name}`)]));
  let stream = null;
  let due = false;
  let busy = false;
  let late = false;

  function say(name, says) {
    notes.get(name)?.toggleAttribute("hidden", !says);
  }

  /** Whether something else is in a control than the server put there. */
  function touched(control) {
    if (control.type === "checkbox") return control.checked !== control.defaultChecked;
    if (control instanceof HTMLSelectElement) {
      const first = Math.max([...control.options].findIndex((option) => option.defaultSelected), 0);
      return control.selectedIndex !== first;
    }
    return control.value !== control.defaultValue;
  }

  /** Whether a person would lose something if this were replaced. */
  function inUse(region) {
    const active = document.activeElement;
    if (region !== active && region.contains(active)) return true;
    if (region.querySelector("[aria-busy]") || [...region.querySelectorAll(CONTROLS)].some(touched)) return true;
    const selection = getSelection();
    return selection.rangeCount > 0 && !selection.isCollapsed && selection.getRangeAt(0).intersectsNode(region);
  }

  /** What is about to be clicked must not move; what was typed wrongly is shown once. */
  function mainStays() {
    const main = document.querySelector("main");
    return main.querySelector(":is(a, button, input, select, textarea, label):hover, [role=alert]") !== null;
  }

  function put(fresh) {
    const stays = mainStays();
    late = false;
    for (const region of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(region.id);
      if (next === null || region.isEqualNode(next)) continue;
      const within = region.closest("main") !== null;
      if ((within && stays) || inUse(region)) {
        late = true;
        continue;
      }
      region.replaceChildren(...next.childNodes);
      if (within) document.title = fresh.title;
    }
    say("held", late);
  }

  /** The page as it is now; null when this address does not show it any more. */
  async function load() {
    try {
      const answer = await fetch(shown, {
        credentials: "same-origin",
        redirect: "error",
        signal: AbortSignal.timeout(WAITED_MS),
      });
      const html = answer.headers.get("content-type")?.startsWith("text/html");
      if (!answer.ok || !html || answer.url !== shown) return null;
      return new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      return null;
    }
  }

  async function refresh() {
    due = true;
    if (busy) return;
    busy = true;
    while (due) {
      due = false;
      const began = performance.now();
      const fresh = await load();
      if (fresh !== null) put(fresh);
      // A page that is dear to make is made half of the time at most.
      await new Promise((done) => setTimeout(done, performance.now() - began));
    }
    busy = false;
  }

  function open() {
    if (stream !== null || document.visibilityState !== "visible") return;
    stream = new EventSource("/live");
    stream.addEventListener("open", () => {
      say("away", false);
      // What changed before it was open.
      refresh();
    });
    stream.addEventListener("error", () => {
      const ended = stream?.readyState === EventSource.CLOSED;
      say("away", !ended);
      say("ended", ended);
    });
    for (const kind of KINDS) {
      stream.addEventListener(kind, () => {
        if (document.querySelector(`[data-live~="${kind}"]`) !== null) refresh();
      });
    }
  }

  /** A page nobody sees takes none of the few connections a browser has for one server. */
  function close() {
    stream?.close();
    stream = null;
  }

  function again() {
    // Once what moved the focus, the pointer or the selection is over.
    if (late) setTimeout(() => late && !mainStays() && refresh());
  }

  document.addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? open() : close()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  for (const moved of ["focusout", "mouseout", "selectionchange", "reset", "change"]) {
    document.addEventListener(moved, again);
  }
  // A dry run takes as long as its vendor does.
  document.addEventListener("submit", (event) => event.target.setAttribute("aria-busy", "true"));
  open();
}
