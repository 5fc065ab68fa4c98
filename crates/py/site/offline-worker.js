// Search works in a worker, which pages opened from a disk are not given: a hidden frame takes its
// place. Messages are passed on by hand, because frames of a disk have no origin to address.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const program = new URL(url, location.href);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      const answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      this.ready = new Promise((resolve) => {
        document.body.appendChild(this.frame);
        const inside = this.frame.contentWindow;
        inside.document.open();
        inside.document.close();
        inside.postMessage = (data) => answer(data);
        const load = (source) =>
          new Promise((loaded, failed) => {
            const script = inside.document.createElement("script");
            script.src = new URL(source, program);
            script.onload = loaded;
            script.onerror = () => failed(new Error(`cannot load ${script.src}`));
            inside.document.head.appendChild(script);
          });
        inside.importScripts = (...sources) =>
          sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
        load(program).then(resolve);
      });
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
