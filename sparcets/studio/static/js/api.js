// Requests to the API. Error responses become ApiError; after a 401 response the page is loaded again, which asks for the token.

const BASE = "/api/v1";

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `The studio responded with status ${status}.`);
    this.status = status;
    this.code = body?.error?.code ?? "unknown";
  }
}

async function request(method, path, body, headers = {}) {
  let response;
  try {
    response = await fetch(BASE + path, { method, body, headers });
  } catch {
    throw new ApiError(0, { error: { code: "gone", message: "The studio does not respond. Is it still running?" } });
  }
  if (response.status === 401) {
    location.reload();
    return new Promise(() => {}); // nothing else happens on this page
  }
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => null));
  return response;
}

const JSON_TYPE = { "Content-Type": "application/json" };

export const get = async (path) => (await request("GET", path)).json();
export const post = async (path, body) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE })).json();
export const remove = (path) => request("DELETE", path);
export const file = async (path, body) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE })).blob();
export const upload = async (picked) =>
  (await request("POST", `/datasets/upload?filename=${encodeURIComponent(picked.name)}`, picked,
    { "Content-Type": "application/octet-stream" })).json();
