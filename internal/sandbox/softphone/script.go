package softphone

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"soniq/internal/protocol/media/codec"
)

// The sentences were synthesised by flite (voices slt and rms). They are stored as G.711.
//
//go:embed lines/*.wav
var lines embed.FS

// Sentence is one sentence of the conversation.
type Sentence struct {
	Agent bool // true: spoken by the agent, else by the caller
	Text  string
	PCM   []int16 // 8 kHz
}

// script is the conversation of the two softphones in the demo.
var script = []struct{ file, text string }{
	{"1-agent", "Good morning, this is Dana. How can I help you today?"},
	{"2-caller", "Hello, my internet connection is very slow every evening. The video always stops after seven o'clock."},
	{"3-agent", "I am sorry to hear that. Are you using a wireless connection?"},
	{"4-caller", "No, my computer is connected with a cable and it is still very slow."},
	{"5-agent", "There is a problem with the network in your area. I will send a technician tomorrow morning."},
	{"6-caller", "That would be great. Please call me back when the problem is fixed."},
	{"7-agent", "Yes, we will call you tomorrow afternoon. Goodbye."},
}

// Conversation returns the sentences of a support call about a slow connection.
func Conversation() ([]Sentence, error) {
	all := make([]Sentence, len(script))
	for i, s := range script {
		b, err := lines.ReadFile("lines/" + s.file + ".wav")
		if err != nil {
			return nil, err
		}
		data := bytes.Index(b, []byte("data"))
		if data < 0 || data+8 > len(b) {
			return nil, fmt.Errorf("line %s is no WAV file", s.file)
		}
		size := int(binary.LittleEndian.Uint32(b[data+4:]))
		speech := b[data+8 : min(data+8+size, len(b))]
		all[i] = Sentence{Agent: s.file[2:] == "agent", Text: s.text, PCM: codec.DecodeULaw(nil, speech)}
	}
	return all, nil
}

// pause is the silence between two sentences.
const pause = 700 * time.Millisecond

// Talk plays the conversation on two lines, in turns. It calls said before each sentence.
func Talk(ctx context.Context, caller, agent *ActiveCall, said func(Sentence)) error {
	conversation, err := Conversation()
	if err != nil {
		return err
	}
	for _, s := range conversation {
		who := caller
		if s.Agent {
			who = agent
		}
		said(s)
		if err := who.Say(ctx, s.PCM); err != nil {
			return fmt.Errorf("say %q: %w", s.Text, err)
		}
		if err := waitBetweenSentences(ctx, caller, agent); err != nil {
			return err
		}
	}
	return nil
}

func waitBetweenSentences(ctx context.Context, caller, agent *ActiveCall) error {
	select {
	case <-time.After(pause):
		return nil
	case <-caller.over:
	case <-agent.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return errors.New("the call ended in the middle of the conversation")
}
