package voiceagent

import (
	"context"
	"strings"

	"soniq/internal/protocol/media/clip"
)

// phrase is a standard announcement of all agents.
type phrase int

const (
	disclosure phrase = iota
	scripted          // disclosure of an agent with prepared answers
	repeatPlease
	stillThere
	connecting
	apology
	moment
	goodbye
	leaveMessage
)

// phrases has the announcements by language; other languages get the English ones.
var phrases = map[string][]string{
	"en": {"You are speaking with an automated assistant.", "You are speaking with an automated assistant that gives prepared answers.",
		"Sorry, I did not understand. Could you say that again?", "Are you still there?", "I will connect you now. One moment, please.",
		"I am sorry, something went wrong on our side. One moment, please.", "One moment, please.", "Thank you for calling. Goodbye.",
		"You can leave a message now."},
	"de": {"Sie sprechen mit einem automatischen Assistenten.",
		"Sie sprechen mit einem automatischen Assistenten mit vorbereiteten Antworten.",
		"Das habe ich leider nicht verstanden. Können Sie das wiederholen?", "Sind Sie noch da?",
		"Ich verbinde Sie jetzt. Einen Moment, bitte.",
		"Es tut mir leid, bei uns ist etwas schiefgegangen. Einen Moment, bitte.", "Einen Moment, bitte.",
		"Danke für Ihren Anruf. Auf Wiederhören.", "Sie können jetzt eine Nachricht hinterlassen."},
	"fr": {"Vous parlez à un assistant automatique.", "Vous parlez à un assistant automatique aux réponses préparées.",
		"Désolé, je n'ai pas compris. Pouvez-vous répéter ?", "Êtes-vous toujours là ?",
		"Je vous mets en relation. Un instant, s'il vous plaît.",
		"Désolé, un problème est survenu de notre côté. Un instant, s'il vous plaît.", "Un instant, s'il vous plaît.",
		"Merci de votre appel. Au revoir.", "Vous pouvez laisser un message."},
	"es": {"Está hablando con un asistente automático.", "Está hablando con un asistente automático con respuestas preparadas.",
		"Perdone, no le he entendido. ¿Puede repetirlo?", "¿Sigue ahí?", "Le paso ahora. Un momento, por favor.",
		"Lo siento, algo ha fallado por nuestra parte. Un momento, por favor.", "Un momento, por favor.", "Gracias por llamar. Adiós.",
		"Ahora puede dejar un mensaje."},
}

func (t *conversation) phrase(p phrase) string { return phraseIn(t.settings.Language, p) }

func phraseIn(language string, p phrase) string {
	code, _, _ := strings.Cut(strings.ToLower(language), "-")
	all, ok := phrases[code]
	if !ok {
		all = phrases["en"]
	}
	return all[p]
}

// Disclosure returns the announcement that the caller speaks with an automated assistant, which comes first.
func Disclosure(language string, isScripted bool) string {
	if isScripted {
		return phraseIn(language, scripted)
	}
	return phraseIn(language, disclosure)
}

// prepareFiller synthesises the phrase that is played if a reply takes long, and the apology, which the synthesiser
// caches: it has to begin at once when an engine has failed.
func (t *conversation) prepareFiller() {
	if isScripted(t.model) {
		return
	}
	t.work.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, 2*t.s.stall)
		defer cancel()
		clip, err := t.s.cfg.Synthesizer.Synthesize(ctx, t.settings.Org, t.phrase(moment), t.settings.Voice, t.settings.Language, false)
		if err == nil {
			t.post(func() { t.setFiller(clip) })
			_, _ = t.s.cfg.Synthesizer.Synthesize(ctx, t.settings.Org, t.phrase(apology), t.settings.Voice, t.settings.Language, false)
		}
	})
}

func (t *conversation) setFiller(clip *clip.Clip) { t.filler = clip }

func isScripted(m LanguageModel) bool {
	_, is := m.(*ScriptedModel)
	return is
}

// greet plays the disclosure, which cannot be interrupted, and then the configured greeting.
func (t *conversation) greet() {
	texts := []string{Disclosure(t.settings.Language, isScripted(t.model))}
	if g := strings.TrimSpace(t.settings.Greeting); g != "" {
		texts = append(texts, g)
	} else if s, is := t.model.(*ScriptedModel); is {
		texts = append(texts, s.offer())
	}
	t.say(nil, 1, texts...)
}

// handleKeys processes the keys the caller pressed.
func (t *conversation) handleKeys() {
	for {
		key, ok := t.caller.TakeKey()
		if !ok {
			return
		}
		if t.ending != nil || t.result != nil {
			continue
		}
		switch {
		case key == personKey && t.digits == "" && t.settings.Handoff:
			t.handOver("the caller pressed 0", t.phrase(connecting))
		case key == '#' && t.digits != "":
			t.answerKeys()
		case len(t.digits) < maxDigits:
			t.digits, t.lastKey = t.digits+string(key), t.s.cfg.Clock.Now()
			if t.speech != nil && t.speech.interruptible() {
				t.speech.pause()
			}
		}
	}
}

// answerKeys answers the pressed keys.
func (t *conversation) answerKeys() {
	if t.toolsRunning {
		return
	}
	text := keysPrefix + t.digits
	t.digits = ""
	t.dropUtterance()
	t.answer(&callerUtterance{text: text, began: t.lastKey, last: t.lastKey, transcribedAt: t.lastKey})
}

// maxDigits limits the keys of one answer.
const maxDigits = 40

// keysPrefix precedes pressed keys in the caller's text.
const keysPrefix = "(pressed) "
