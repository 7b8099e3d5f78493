package softphone

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"soniq/internal/protocol/media"
)

// The lines were spoken by flite (voices slt and rms) and are kept as G.711.
//
//go:embed lines/*.wav
var lines embed.FS

// A Sentence is one line of a conversation.
type Sentence struct {
	Agent bool // the agent says it, else the caller
	Text  string
	PCM   []int16 // 8 kHz
}

// script is what the two robots say to each other.
var script = []struct{ file, text string }{
	{"1-agent", "Good morning, this is Dana. How can I help you today?"},
	{"2-caller", "Hello, my internet connection is very slow every evening. The video always stops after seven o'clock."},
	{"3-agent", "I am sorry to hear that. Are you using a wireless connection?"},
	{"4-caller", "No, my computer is connected with a cable and it is still very slow."},
	{"5-agent", "There is a problem with the network in your area. I will send a technician tomorrow morning."},
	{"6-caller", "That would be great. Please call me back when the problem is fixed."},
	{"7-agent", "Yes, we will call you tomorrow afternoon. Goodbye."},
}

// Conversation is what a caller and an agent say about a slow connection, line by line.
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
		all[i] = Sentence{Agent: s.file[2:] == "agent", Text: s.text, PCM: media.DecodeULaw(nil, speech)}
	}
	return all, nil
}

// pause is the silence between two sentences.
const pause = 700 * time.Millisecond

// Talk has two robots hold the conversation, each hearing the other, and tells said of each sentence before it is
// spoken.
func Talk(ctx context.Context, caller, agent *Line, said func(Sentence)) error {
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
		if err := rest(ctx, caller, agent); err != nil {
			return err
		}
	}
	return nil
}

func rest(ctx context.Context, caller, agent *Line) error {
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
