package org

import (
	"encoding/json"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/redact"
)

// Settings are the settings of an organisation. Only explicit choices are stored. Everything else follows Defaults,
// including later versions of them.
type Settings struct {
	Recording           Recording   `json:"recording"`
	Transcripts         Transcripts `json:"transcripts"`
	Redaction           Redaction   `json:"redaction"`
	Outbound            Outbound    `json:"outbound"`
	Emergency           Emergency   `json:"emergency"`
	AI                  AI          `json:"ai" doc:"Every engine is null: the operator chooses those of the installation"`
	Brand               *string     `json:"brand"`
	WebhookHeaderPrefix *string     `json:"webhook_header_prefix" doc:"Begins the headers of your webhooks, such as x-service-signature; null: the prefix of the installation"`
}

// Recording controls which calls are recorded, and the retention of recordings.
type Recording struct {
	Mode          string `json:"mode" enum:"on,off,per_queue"`
	Announce      bool   `json:"announce" doc:"Tell the parties before recording starts"`
	Consent       string `json:"consent" enum:"none,notice,opt_in" doc:"notice: a notice is always played; opt_in: nothing is recorded unless somebody starts it"`
	RetentionDays int    `json:"retention_days"`

	AnnounceAudioID      *string `json:"announce_audio_id" doc:"Audio that is played as the notice; null: a spoken text"`
	AnnounceText         *string `json:"announce_text" doc:"Text of the notice, spoken in the organisation's language; null: the standard text"`
	SilentAcknowledgedAt db.Time `json:"silent_acknowledged_at" nullable:"true" doc:"When somebody took responsibility for recordings without a notice"`
	SilentAcknowledgedBy *string `json:"silent_acknowledged_by" doc:"User or API key that did so"`
	Law                  Law     `json:"law" enum:"one_party,announcement,all_party" doc:"What the law of the country asks for"`
	LawSource            string  `json:"law_source"`
	Warning              *string `json:"warning" doc:"Set if calls are recorded against that law"`
}

// Transcripts controls the retention, the languages and the vocabulary of transcripts.
type Transcripts struct {
	RetentionDays int      `json:"retention_days"`
	Languages     []string `json:"languages" nullable:"false" doc:"The first is that of calls; one that is spoken in the country of a foreign number is that of its calls. Empty: the organisation's language"`
	Vocabulary    []Term   `json:"vocabulary" nullable:"false" doc:"Names, products and other words of your own that are to be understood in calls, the most important first; 300 at most"`
	LearnNames    bool     `json:"learn_names" doc:"The names of users, queues, the organisation and the caller are understood without being in the vocabulary"`
}

// Redaction controls which numbers are removed from what is said and written (package redact).
type Redaction struct {
	Kinds    []redact.Kind `json:"kinds" nullable:"false" enum:"card,expiry,cvv,account,health,social,pin" doc:"Numbers that are removed from transcripts, summaries, notes, events, memory and everything made of them, before anything is stored or sent; empty: none. card: payment card, expiry and cvv: expiry date and security code of one, account: IBAN, bank account, sort code, routing number, health: health insurance, social: social security, tax and identity numbers, pin: secret numbers"`
	Messages bool          `json:"messages" doc:"Remove the same numbers from text messages: from received ones before they are stored, delivered to phones and published, from your own after they were sent"`
	Audio    bool          `json:"audio" doc:"Replace the same numbers in recordings by silence. A recording becomes available when its transcript is made, and not at all if it cannot be made"`
}

// policy returns the policy of the settings.
func (r Redaction) policy() redact.Policy {
	return redact.Policy{Kinds: r.Kinds, Audio: r.Audio && len(r.Kinds) > 0, Messages: r.Messages && len(r.Kinds) > 0}
}

// Term is a word or a short phrase that dictionaries may lack.
type Term struct {
	Term       string   `json:"term" doc:"As it is to be written, 60 characters at most" example:"Zyntrix"`
	SoundsLike []string `json:"sounds_like,omitempty" nullable:"false" doc:"Ways to say it where that is not as it is written, five at most: in English words (zin tricks) or in phones of the CMU dictionary (Z IH N T R IH K S)" example:"[\"zin tricks\"]"`
}

// Outbound limits calls to the public network.
type Outbound struct {
	Enabled          bool     `json:"enabled" doc:"false stops every outbound call but emergency calls"`
	AllowedCountries []string `json:"allowed_countries" nullable:"false" doc:"ISO 3166; the organisation's own country unless chosen"`
	BlockedTypes     []string `json:"blocked_types" nullable:"false"`
	CallsPerSecond   int      `json:"calls_per_second"`
	ConcurrentCalls  int      `json:"concurrent_calls"`
	MinutesPerDay    int      `json:"minutes_per_day" doc:"0: no limit"`
}

// Emergency describes emergency calling.
type Emergency struct {
	Status         string  `json:"status" enum:"not_available,configured"`
	AcknowledgedAt db.Time `json:"acknowledged_at" nullable:"true"`
	DefaultAddress *string `json:"default_address" doc:"In one line; told to emergency services where location is not known"`
	Location       *Civic  `json:"location" doc:"Where the organisation's phones are, unless a phone has an emergency_location of its own"`
}

// AI has the engines for transcripts, summaries, memory and speech. All are null: those of the installation are used.
type AI struct {
	Transcriber *Engine `json:"transcriber"`
	Writer      *Engine `json:"writer"`
	Embedder    *Engine `json:"embedder"`
	Voice       *Engine `json:"voice"`
}

// Engine is a speech or language engine. The API never returns its key.
type Engine struct {
	Name    string  `json:"name"`
	Address *string `json:"address"`
	Model   *string `json:"model"`
}

// NumberTypes are the types of numbers that blocked_types may contain.
var NumberTypes = []string{"fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "voip", "personal_number",
	"pager", "uan", "voicemail", "satellite", "unknown"}

// Defaults returns the settings of an organisation in a country without explicit choices.
func Defaults(country string) Settings {
	return Settings{
		Recording:   Recording{Mode: "on", Consent: "none", RetentionDays: 365},
		Transcripts: Transcripts{RetentionDays: 183, Languages: []string{}, Vocabulary: []Term{}, LearnNames: true},
		Redaction:   Redaction{Kinds: []redact.Kind{}, Audio: true, Messages: true},
		Outbound: Outbound{Enabled: true, AllowedCountries: []string{country}, CallsPerSecond: 5, ConcurrentCalls: 100,
			BlockedTypes: []string{"premium_rate", "shared_cost", "personal_number", "pager", "voicemail", "satellite", "unknown"}},
		Emergency: Emergency{Status: "not_available"},
	}
}

// effective returns the defaults, overridden by the explicit choices.
func effective(country string, explicit map[string]any) (Settings, error) {
	s := Defaults(country)
	b, err := json.Marshal(explicit)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read settings: %w", err)
	}
	s.Recording = s.Recording.withLaw(country)
	s.AI = AI{} // engines that earlier versions accepted and never used
	return s, nil
}

// merge applies a merge patch (RFC 7396 §2) to an object, which it changes and returns.
func merge(target map[string]any, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(target, name)
		case map[string]any:
			inner, _ := target[name].(map[string]any)
			target[name] = merge(inner, v)
		default:
			target[name] = v
		}
	}
	return target
}
