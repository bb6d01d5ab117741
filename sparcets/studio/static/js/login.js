// The page that asks for the token. The state of the studio's page, in the fragment of the URL, is kept.

document.querySelector("form").action = `/${location.hash}`;

// A link on another site leads here although the browser has the cookie, which it does not send with such a request.
if (performance.getEntriesByType("navigation")[0]?.type !== "reload") {
  const response = await fetch("/api/v1/status").catch(() => null);
  if (response?.ok) location.reload();
}
