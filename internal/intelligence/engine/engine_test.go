package engine

import "testing"

func TestConfig_EndpointAddress(t *testing.T) {
	t.Parallel()
	for use, want := range map[string]string{
		"https://a.example":                     "https://a.example/v1/embeddings",
		"https://a.example/":                    "https://a.example/v1/embeddings",
		"http://127.0.0.1:8000/v1/":             "http://127.0.0.1:8000/v1/embeddings",
		"https://a.example/openai/v1":           "https://a.example/openai/v1/embeddings",
		"https://a.example/v1/embeddings":       "https://a.example/v1/embeddings",
		"https://a.example/v1?api-version=2026": "https://a.example/v1/embeddings?api-version=2026",
	} {
		if s, err := NewEndpoint(Config{Engine: use}, "/embeddings"); err != nil || s.address != want {
			t.Errorf("%s is asked at %+v, %v; want %s", use, s, err, want)
		}
	}
}
