// Browsers refuse workers to pages that were opened from files. There, the search runs in a frame of the page instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #listener = null;
    #ready;

    constructor(address) {
      super();
      this.#frame.hidden = true;
      (document.body || document.documentElement).append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      const script = inside.document.createElement("script");
      this.#ready = new Promise((resolve, reject) => {
        script.onload = () => resolve(inside);
        script.onerror = () => reject(new Error(`${address} cannot be read`));
      });
      script.src = new URL(address, location);
      inside.document.documentElement.append(script);
    }

    set onmessage(listener) {
      this.removeEventListener("message", this.#listener);
      this.#listener = listener;
      this.addEventListener("message", listener);
    }

    postMessage(data) {
      this.#ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
