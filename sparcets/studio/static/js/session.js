// The secret of this page's session, which every request to the API contains. It is kept in the storage of this tab,
// which belongs to one origin and so to one port; browsers would send a cookie to all ports of the host. Tabs of the same
// origin pass it on to each other, so that a link opens in a new tab as long as one is logged in.

const NAME = "sparcets-session";
const PATIENCE = 300; // milliseconds in which another tab can answer
const channel = new BroadcastChannel(NAME);
let onSecret = () => {};

export const secret = () => sessionStorage.getItem(NAME);

export function keep(value) {
  sessionStorage.setItem(NAME, value);
  channel.postMessage({ secret: value });
}

// Ends the use of a secret in all tabs: after a log-out, or when the studio does not accept it any more.
export function forget(value) {
  if (secret() === value) sessionStorage.removeItem(NAME);
  channel.postMessage({ ended: value });
}

// Calls the listener with a secret that another tab has.
export function askTabs(listener) {
  onSecret = listener;
  channel.postMessage({ ask: true });
}

export function toLogin(state = location.hash) {
  location.replace(`/login${state}`);
  return new Promise(() => {}); // nothing else happens on this page
}

// The secret; without one, the page that asks for it is shown.
export async function needed() {
  if (!secret()) await new Promise((resolve) => { askTabs(resolve); setTimeout(resolve, PATIENCE); });
  return secret() ?? toLogin();
}

channel.addEventListener("message", ({ data }) => {
  if (data.ask && secret()) channel.postMessage({ secret: secret() });
  if (data.secret && !secret()) {
    sessionStorage.setItem(NAME, data.secret);
    onSecret();
  }
  if (data.ended && data.ended === secret()) {
    sessionStorage.removeItem(NAME);
    toLogin();
  }
});
