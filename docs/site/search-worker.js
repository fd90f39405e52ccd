// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Browsers start no workers for pages that are files. Search is one: here it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      this.waiting = [];
      this.deliver = (data) => this.waiting.push(data);
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      script.onload = () => {
        this.deliver = (data) => inner.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.forEach(this.deliver);
      };
      frame.contentDocument.body.appendChild(script);
    }
    postMessage(data) {
      this.deliver(data);
    }
  };
}
