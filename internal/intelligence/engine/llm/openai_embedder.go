package llm

import (
	"context"
	"fmt"
	"sync/atomic"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/memory"
)

// embedBatch is the number of texts in one request.
const embedBatch = 64

// openAIEmbedder embeds texts on an OpenAI-compatible server.
type openAIEmbedder struct {
	endpoint *engine.Endpoint
	model    string
	dims     atomic.Int32
}

// Model returns the name and the dimensions of the embedding. Dimensions is 0 until the first response.
func (r *openAIEmbedder) Model() memory.Model {
	return memory.Model{Name: r.model, Dimensions: int(r.dims.Load())}
}

// Embed returns the vectors of texts, scaled to length one.
func (r *openAIEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(len(texts), embedBatch)
		part, err := r.embed(ctx, texts[:n])
		if err != nil {
			return nil, fmt.Errorf("embed %d texts: %w", n, err)
		}
		out, texts = append(out, part...), texts[n:]
	}
	return out, nil
}

func (r *openAIEmbedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	request := struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}{r.model, texts}
	var answer struct {
		Data []struct {
			Index     int
			Embedding []float32
		}
	}
	if err := r.endpoint.PostJSON(ctx, request, &answer); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(out) || len(d.Embedding) == 0 || len(d.Embedding) != len(answer.Data[0].Embedding) {
			return nil, fmt.Errorf("vector %d of %d numbers was not asked for", d.Index, len(d.Embedding))
		}
		out[d.Index] = engine.UnitVector(d.Embedding)
	}
	for i, v := range out {
		if v == nil {
			return nil, fmt.Errorf("no vector came for text %d of %d", i+1, len(out))
		}
	}
	r.dims.Store(int32(len(out[0])))
	return out, nil
}
