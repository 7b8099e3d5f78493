/** The connection of the telephone to the server, as JsSIP asks for it. Each attempt takes a token of its own, because a token connects once. */
export class TokenSocket {
  via_transport: string;
  readonly url: string;
  readonly sip_uri: string;
  onconnect = (): void => undefined;
  ondisconnect = (_error: boolean, _code?: number, _reason?: string): void => undefined;
  ondata = (_data: unknown): void => undefined;
  #socket: WebSocket | undefined;
  /** Counts the attempts: what belongs to an earlier one is of no interest. */
  #attempt = 0;
  #connecting = false;
  readonly #token: () => Promise<string>;
  readonly #heard: () => void;

  /** token fetches a token, or throws. heard is called for all that the server sends. */
  constructor(token: () => Promise<string>, heard: () => void) {
    // The address is that of this page: the policy allows no other, and proxies may have changed it.
    const at = new URL("/ws/sip", location.href);
    at.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    at.hash = "";
    this.url = at.href;
    this.sip_uri = `sip:${at.host};transport=ws`;
    this.via_transport = at.protocol === "wss:" ? "WSS" : "WS";
    this.#token = token;
    this.#heard = heard;
  }

  connect(): void {
    if (this.isConnected() || this.#connecting) return;
    this.#connecting = true;
    const attempt = ++this.#attempt;
    const lost = (error: boolean, code?: number, reason?: string) => {
      if (attempt !== this.#attempt) return;
      this.#attempt++;
      this.#connecting = false;
      this.#socket = undefined;
      this.ondisconnect(error, code, reason);
    };
    this.#token().then((token) => {
      if (attempt !== this.#attempt) return;
      const socket = new WebSocket(this.url, ["sip", "token." + token]);
      this.#socket = socket;
      socket.binaryType = "arraybuffer";
      socket.onopen = () => {
        if (attempt !== this.#attempt) return;
        this.#connecting = false;
        this.#heard();
        this.onconnect();
      };
      socket.onclose = (e) => lost(!e.wasClean, e.code, e.reason);
      socket.onmessage = ({ data }: MessageEvent<unknown>) => {
        if (attempt !== this.#attempt) return;
        this.#heard();
        this.ondata(data);
      };
    }).catch(() => lost(true));
  }

  disconnect(): void {
    this.#attempt++;
    this.#connecting = false;
    this.#socket?.close();
    this.#socket = undefined;
  }

  /** Gives the connection up, as if the network had ended it. */
  drop(): void {
    const had = this.#socket !== undefined || this.#connecting;
    this.disconnect();
    if (had) this.ondisconnect(true);
  }

  send(message: string): boolean {
    if (!this.isConnected()) return false;
    this.#socket?.send(message);
    return true;
  }

  isConnected(): boolean { return this.#socket?.readyState === WebSocket.OPEN; }

  isConnecting(): boolean { return this.#connecting; }
}
