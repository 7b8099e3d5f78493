import { useEffect, useState } from "react";
import { serverTime } from "../api/client";
import { duration } from "../words/words";

/** A time that runs, counted from a time of the server. */
export function Running({ since }: { since: string }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return <time className="figures">{duration((serverTime() - Date.parse(since)) / 1000)}</time>;
}
