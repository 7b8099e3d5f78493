import { QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { queries } from "./api/query";
import { startLive } from "./live/stream";
import { SignedIn } from "./shell/SignedIn";
import { startTheme } from "./shell/theme";
import { Shell } from "./shell/Shell";
import { startLanguage, useLanguage } from "./words/words";

// A library empties an element by setting innerHTML to the empty string. Nothing else may become markup.
window.trustedTypes?.createPolicy("default", { createHTML: (text) => (text === "" ? "" : null) });

function Console() {
  useLanguage(); // another language renders everything again
  return <QueryClientProvider client={queries}><SignedIn onSignedIn={startLive}><Shell /></SignedIn></QueryClientProvider>;
}

startTheme();
void startLanguage().then(() => {
  const root = document.getElementById("root");
  if (root) createRoot(root).render(<Console />);
});
