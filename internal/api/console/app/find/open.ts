import { store } from "../live/store";

/** Whether Find is open. */
export const finding = store(false);
