/* A browser starts no worker for a page that was opened from disk (file://). This gives such pages one
   that runs in a hidden frame instead, so that the search of this site works without a server. */
(function () {
  if (location.protocol !== "file:" || window.IndexTablesWorker) return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.start(String(url));
    }

    async start(url) {
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><html><body></body></html>");
      inside.document.close();
      inside.postMessage = (data) => this.answer(data);
      inside.importScripts = (...urls) => urls.reduce(
        (before, one) => before.then(() => this.load(new URL(one, url).href)), Promise.resolve());
      await this.load(new URL(url, location.href).href);
      this.ready = inside;
      this.waiting.splice(0).forEach((data) => this.postMessage(data));
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.frame.contentWindow.document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = () => failed(new Error("cannot load " + url));
        this.frame.contentWindow.document.body.appendChild(script);
      });
    }

    postMessage(data) {
      if (!this.ready) { this.waiting.push(data); return; }
      const event = new this.ready.MessageEvent("message", { data });
      this.ready.dispatchEvent(event);
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      if (this.onmessage) this.onmessage(event);
      this.dispatchEvent(event);
    }

    terminate() { this.frame.remove(); }
  }

  window.IndexTablesWorker = window.Worker = FrameWorker;
})();
