// The stream of events. It says when it is connected, and every time it connects again, as what was
// journaled in between is seen by loading the page once more.

const kQuietLimit = 40_000;  // vergerd sends at least a comment every 15 seconds
const kLongestPause = 15_000;

export class Live {
  /** `onState`: "connecting", "live", {retryAt}; `onEvent`: an event; `onEnded`: 401. */
  constructor({onState, onEvent, onConnected, onEnded}) {
    Object.assign(this, {onState, onEvent, onConnected, onEnded});
    this.failures = 0;
  }

  start() {
    this.stop();
    this.stopped = false;
    window.addEventListener("online", this.retryNow);
    this.connect();
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    clearTimeout(this.timer);
    window.removeEventListener("online", this.retryNow);
  }

  retryNow = () => {
    if (this.stopped || this.isLive) return;
    clearTimeout(this.timer);
    this.abort?.abort();
    this.connect();
  };

  async connect() {
    const abort = new AbortController();
    this.abort = abort;
    this.onState("connecting");
    try {
      await this.read(abort);
    } catch {
      // Whatever it was, the stream is over: it is made again below.
    }
    if (this.stopped || this.abort !== abort) return;
    this.isLive = false;
    const pause = Math.min(kLongestPause, 500 * 2 ** this.failures) * (0.75 + Math.random() / 2);
    this.failures += 1;
    this.onState({retryAt: Date.now() + pause});
    this.timer = setTimeout(() => this.connect(), pause);
  }

  async read(abort) {
    let quiet = setTimeout(() => abort.abort(), kQuietLimit);
    try {
      const response = await fetch("/api/v1/events?after=end", {
        headers: {Accept: "text/event-stream"}, signal: abort.signal, credentials: "same-origin"
      });
      if (response.status === 401) {
        this.stop();
        this.onEnded();
        return;
      }
      if (!response.ok) return;
      this.isLive = true;
      this.failures = 0;
      this.onState("live");
      this.onConnected();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const {done, value} = await reader.read();
        if (done) return;
        clearTimeout(quiet);
        quiet = setTimeout(() => abort.abort(), kQuietLimit);
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) this.take(part);
      }
    } finally {
      clearTimeout(quiet);
    }
  }

  take(text) {
    const data = text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
    if (data) this.onEvent(JSON.parse(data));
  }
}
