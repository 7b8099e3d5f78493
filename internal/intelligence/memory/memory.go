// Package memory is the call memory: it stores passages of calls, notes, messages and facts, and searches them by
// meaning (embeddings) and by words (BM25). Every entry belongs to one organisation; a search compares entries of one
// organisation only.
package memory

import "context"

// Term identifies the base form of a word.
type Term uint32

// Lexicon has the words of a language with their vectors. It is always the builtin one, also with a remote embedder.
type Lexicon interface {
	// Terms returns the base forms of the words of a text, in order, without stop words.
	Terms(text string) []Term
	// Vector returns the vector of a word and its weight between 0 (everywhere) and 1 (rare). For a word that is not
	// in the lexicon it returns nil and 1.
	Vector(t Term) (vector []int8, weight float32)
}

// Embedder converts texts to vectors whose cosine is the similarity of the texts. Implementations are safe for
// concurrent use.
type Embedder interface {
	// Embed returns one vector of length one per text.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model returns the model of the vectors. Vectors of different models are never compared.
	Model() Model
}

// Model is the name of an embedding and its size. Results of the builtin embedding are ranked with the word vectors
// of the lexicon, because their scores are comparable. Those of other models are merged by rank.
type Model struct {
	Name       string `json:"model"`
	Dimensions int    `json:"dimensions"` // 0 until the first response of a remote model
	Builtin    bool   `json:"-"`
}
