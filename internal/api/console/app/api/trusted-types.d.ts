// The part of the Trusted Types API that main.tsx uses; lib.dom has no types of it.
interface Window {
  trustedTypes?: { createPolicy(name: string, rules: { createHTML?: (text: string) => string | null }): unknown };
}
