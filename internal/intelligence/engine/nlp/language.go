package nlp

import "soniq/internal/intelligence/transcript"

// CheckLanguage returns an error for a language other than English, in which the rules are written.
func (r *RuleSummarizer) CheckLanguage(language string) error {
	if transcript.BaseLanguage(language) == "en" {
		return nil
	}
	return &transcript.UnsupportedLanguage{Language: language, MissingDependency: transcript.MissingDependency{
		Problem: "the builtin summariser knows English only, not " + language,
		Remedy:  "set SONIQ_SUMMARIZER to the URL of an OpenAI-compatible server"}}
}
