/** The texts of each language but English, by its tag. The builder makes this of the files in this folder. */
declare const translations: Record<string, () => Promise<{ default: Record<string, string> }>>;
export default translations;
