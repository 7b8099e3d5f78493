package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"soniq/internal/identity/signin"
	"soniq/internal/identity/user"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/mail"
	"soniq/internal/protocol/media/wav"
	"soniq/internal/telephony/call/recording"
	"soniq/internal/telephony/voicemail"
)

// Transcription of voicemail messages, and mails about them.

// voicemailObserver passes changes of messages on to the other packages.
type voicemailObserver struct{ p *Platform }

// VoicemailReceived starts the transcription.
func (o voicemailObserver) VoicemailReceived(ctx context.Context, tx db.Querier, org, id string) error {
	return o.p.transcripts.OnVoicemail(ctx, tx, org, id)
}

// VoicemailSaved stores the message's id in the record of the call.
func (o voicemailObserver) VoicemailSaved(ctx context.Context, tx db.Querier, org, callID, id string) error {
	return o.p.calls.SetVoicemail(ctx, tx, org, callID, id)
}

// VoicemailRemoved deletes the transcript.
func (o voicemailObserver) VoicemailRemoved(ctx context.Context, tx db.Querier, v voicemail.Voicemail) error {
	if v.Transcript == nil || v.Transcript.ID == nil {
		return nil
	}
	return o.p.transcripts.DeleteMessage(ctx, tx, v.OrgID, *v.Transcript.ID)
}

// voicemailTranscripts implements transcript.Voicemails.
type voicemailTranscripts struct{ platform *Platform }

// OpenAudio opens the audio of a message that has no transcript yet.
func (m voicemailTranscripts) OpenAudio(ctx context.Context, org, id string) (string, io.ReadSeekCloser, int64, error) {
	v, f, size, err := m.platform.voicemail.Open(ctx, org, id)
	if err != nil {
		return "", nil, 0, err
	}
	if v.Transcript != nil && v.Transcript.Status != string(transcript.Queued) {
		return v.CallID, nil, 0, f.Close()
	}
	return v.CallID, f, size, nil
}

// Redact replaces parts of the audio of a message by silence.
func (m voicemailTranscripts) Redact(ctx context.Context, org, id string, parts []transcript.Redaction) error {
	all := make([]wav.Span, len(parts))
	for i, r := range parts {
		all[i] = recording.SilencedSpan(r.StartMS, r.EndMS)
	}
	return m.platform.voicemail.Silence(ctx, org, id, all)
}

// SaveTranscript stores the transcript of a message, and enqueues the mail to its user.
func (m voicemailTranscripts) SaveTranscript(ctx context.Context, tx db.Querier, org, id string, t transcript.Transcript, n transcript.Note,
	urgency string) error {
	before, err := m.platform.voicemail.Get(ctx, tx, org, id)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	words := voicemail.Transcription{Transcript: t.ID, Status: string(t.Status), Text: strings.TrimPrefix(t.Text, "Caller: "),
		Summary: n.Summary, Urgency: urgency}
	if err := m.platform.voicemail.SetTranscript(ctx, tx, org, id, words); err != nil {
		return fmt.Errorf("keep words of message %s: %w", id, err)
	}
	if before.Transcript == nil || before.Transcript.Status != string(transcript.Queued) {
		return nil
	}
	return m.platform.mailOf(ctx, tx, before)
}

// messageMail is the kind of the jobs that mail users about messages.
const messageMail = "voicemail.mail"

type messageMailIn struct {
	ID string `json:"voicemail_id"`
}

// mailOf enqueues the mail about a message if the user wants mails and a mail server is configured.
func (p *Platform) mailOf(ctx context.Context, tx db.Querier, v voicemail.Voicemail) error {
	if p.mailer == nil || v.Mailbox.Type != "user" {
		return nil
	}
	u, err := p.users.Get(ctx, tx, v.OrgID, v.Mailbox.ID)
	if db.IsNone(err) || err == nil && !u.Voicemail.EmailNotify {
		return nil
	}
	if err != nil {
		return err
	}
	return p.jobs.Enqueue(ctx, tx, job.Spec{Org: v.OrgID, Queue: user.MailQueue, Lane: v.OrgID, Kind: messageMail,
		Args: messageMailIn{v.ID}, MaxAttempts: 8, UniqueKey: messageMail + " " + v.ID})
}

// sendMessageMail mails a user about a message: caller, time, transcript, and the link to the audio.
func (p *Platform) sendMessageMail(ctx context.Context, j job.Job) error {
	var in messageMailIn
	if err := j.Bind(&in); err != nil {
		return job.ErrDead
	}
	v, err := p.voicemail.Get(ctx, p.db.Read(ctx), j.Org, in.ID)
	if db.IsNone(err) || err == nil && v.Status == voicemail.Deleted {
		return nil
	}
	if err != nil {
		return err
	}
	u, err := p.users.Get(ctx, p.db.Read(ctx), j.Org, v.Mailbox.ID)
	if db.IsNone(err) || err == nil && (!u.Voicemail.EmailNotify || u.Status == user.Suspended) {
		return nil
	}
	if err != nil {
		return err
	}
	o, err := p.orgs.Get(ctx, j.Org)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	if !o.Sandbox() { // users of sandboxes do not sign in: they get the address of the API
		*v.AudioURL = p.config.BaseURL + signin.MessagePath + v.ID
	}
	subject, text := messageLetter(v, p.zoneOf(ctx, j.Org, u), o.Sandbox())
	files := p.attachedSound(ctx, v, u)
	err = p.mailer.SendFiles(ctx, u.Email, subject, text, files...)
	if err != nil && len(files) > 0 && errors.Is(err, job.ErrDead) { // the server may refuse its size
		err = p.mailer.SendFiles(ctx, u.Email, subject, text)
	}
	return err
}

// maxAttached limits the sound that is attached to a mail, in bytes. Mail servers take 10 MB in general, and a mail has four thirds of
// them.
const maxAttached = 7 << 20

// attachedSound returns the sound of a message as a file for the mail, if the user wants it and it is not too long.
func (p *Platform) attachedSound(ctx context.Context, v voicemail.Voicemail, u user.User) []mail.File {
	if u.Voicemail.EmailAudio == user.AudioLink {
		return nil
	}
	_, f, size, err := p.voicemail.Open(ctx, v.OrgID, v.ID)
	if err != nil {
		p.log.Warn("sound not attached to the mail about a message", "message", v.ID, "err", err)
		return nil
	}
	defer f.Close()
	if size > maxAttached {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(f, maxAttached))
	if err != nil {
		p.log.Warn("sound not attached to the mail about a message", "message", v.ID, "err", err)
		return nil
	}
	return []mail.File{{Name: v.ID + ".wav", Type: "audio/wav", Content: content}}
}

// callerShown returns the name and the number of the caller.
func callerShown(v voicemail.Voicemail) string {
	if v.Contact != nil && v.Contact.Name != "" {
		return v.Contact.Name + " (" + v.FromNumber + ")"
	}
	return v.FromNumber
}

// zoneOf returns the time zone of a user.
func (p *Platform) zoneOf(ctx context.Context, org string, u user.User) *time.Location {
	name := ""
	if o, err := p.orgs.Get(ctx, org); err == nil {
		name = o.Timezone
	}
	if u.Timezone != nil {
		name = *u.Timezone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// messageLetter returns the mail about a message.
func messageLetter(v voicemail.Voicemail, zone *time.Location, sandbox bool) (subject, text string) {
	from := callerShown(v)
	subject = "Voicemail from " + from
	if v.Urgency != nil && *v.Urgency == "high" {
		subject = "Urgent: voicemail from " + from
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s left a message of %d seconds on %s.\n", from, v.DurationSeconds,
		v.ReceivedAt.In(zone).Format("Monday, 2 January 2006 at 15:04 MST"))
	if v.Transcript != nil && v.Transcript.Text != nil {
		fmt.Fprintf(&b, "\nWhat was understood of it:\n\n  %s\n", *v.Transcript.Text)
	}
	switch {
	case v.AudioURL == nil:
	case sandbox:
		fmt.Fprintf(&b, "\nTo hear it, dial *97 on your telephone, or fetch it with an API key:\n%s\n", *v.AudioURL)
	default:
		fmt.Fprintf(&b, "\nTo hear it, dial *97 on your telephone, or open this page:\n%s\n", *v.AudioURL)
	}
	return subject, b.String()
}
