// Package memory remembers what was said on calls and finds it again, by meaning and by words.
//
// Every passage belongs to one organisation; nothing is ever compared across organisations.
package memory

import "context"

// Term identifies the base form of a word.
type Term uint32

// Lexicon knows words. It is always the builtin one, whichever embedder is used.
type Lexicon interface {
	// Terms returns the base forms of the words of a text, in order, without words that carry no meaning of
	// their own.
	Terms(text string) []Term
	// Vector returns the meaning of a word and its weight between 0 (everywhere) and 1 (rare). The vector is nil
	// for a word the lexicon does not know; the weight is 1 then.
	Vector(t Term) (vector []int8, weight float32)
}

// Embedder turns texts into vectors whose cosine tells how alike the texts are. Implementations are safe for
// use by several goroutines.
type Embedder interface {
	// Embed returns one vector of length one per text.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model names the vectors. Vectors of different models are never compared.
	Model() Model
}

// Model names an embedding and its size. Builtin embeddings are ranked with the lexicon's help, as their
// scores are comparable; those of other models are merged by rank.
type Model struct {
	Name       string `json:"model"`
	Dimensions int    `json:"dimensions"` // 0 until the first answer of a remote model
	Builtin    bool   `json:"-"`
}
