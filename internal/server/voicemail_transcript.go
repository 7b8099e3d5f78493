package server

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/telephony/voicemail"
)

// This file joins messages with what understands them, and with mail.

// joinMessages has messages understood, and their users told by mail.
func (p *Platform) joinMessages() {
	p.voicemail.TranscriptStatus = string(transcript.Queued)
	p.voicemail.OnReceive = append(p.voicemail.OnReceive, p.transcripts.OnVoicemail)
	p.voicemail.OnRemove = func(ctx context.Context, tx db.Querier, v voicemail.Voicemail) error {
		if v.Transcript == nil || v.Transcript.ID == nil {
			return nil
		}
		return p.transcripts.DeleteMessage(ctx, tx, v.OrgID, *v.Transcript.ID)
	}
	p.transcripts.Voicemails = messageWords{p}
}

// messageWords lets the transcript service recognise voicemail messages.
type messageWords struct{ house *Platform }

// OpenAudio opens a message whose words are not known yet.
func (m messageWords) OpenAudio(ctx context.Context, org, id string) (string, io.ReadSeekCloser, int64, error) {
	v, f, size, err := m.house.voicemail.Open(ctx, org, id)
	if err != nil {
		return "", nil, 0, err
	}
	if v.Transcript != nil && v.Transcript.Status != string(transcript.Queued) {
		return v.CallID, nil, 0, f.Close()
	}
	return v.CallID, f, size, nil
}

// SaveTranscript keeps the words of a message, and has its user told.
func (m messageWords) SaveTranscript(ctx context.Context, tx db.Querier, org, id string, t transcript.Transcript, n transcript.Note, urgency string) error {
	before, err := m.house.voicemail.Get(ctx, tx, org, id)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	words := voicemail.Transcription{Transcript: t.ID, Status: string(t.Status), Text: strings.TrimPrefix(t.Text, "Caller: "), Summary: n.Summary, Urgency: urgency}
	if err := m.house.voicemail.SetTranscript(ctx, tx, org, id, words); err != nil {
		return fmt.Errorf("keep words of message %s: %w", id, err)
	}
	if before.Transcript == nil || before.Transcript.Status != string(transcript.Queued) {
		return nil
	}
	return m.house.mailOf(ctx, tx, before)
}

// messageMail is the kind of the jobs that tell users of messages by mail.
const messageMail = "voicemail.mail"

type messageMailIn struct {
	ID string `json:"voicemail_id"`
}

// mailOf has the user of a mailbox told by mail, where they want to be and mail is sent here.
func (p *Platform) mailOf(ctx context.Context, tx db.Querier, v voicemail.Voicemail) error {
	if p.users.Invites.Send == nil || v.Mailbox.Type != "user" {
		return nil
	}
	u, err := p.users.Get(ctx, tx, v.OrgID, v.Mailbox.ID)
	if db.IsNone(err) || err == nil && !u.Voicemail.EmailNotify {
		return nil
	}
	if err != nil {
		return err
	}
	return p.jobs.Enqueue(ctx, tx, job.Spec{Org: v.OrgID, Queue: user.MailQueue, Lane: v.OrgID, Kind: messageMail, Args: messageMailIn{v.ID},
		MaxAttempts: 8, UniqueKey: messageMail + " " + v.ID})
}

// sendMessageMail tells a user of a message: who called when, the words, and where the sound is fetched.
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
	subject, text := messageLetter(v, p.zoneOf(ctx, j.Org, u))
	return p.users.Invites.Send(ctx, u.Email, subject, text)
}

// zoneOf is where a user's clocks are.
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

// messageLetter is the mail about a message.
func messageLetter(v voicemail.Voicemail, zone *time.Location) (subject, text string) {
	from := v.FromNumber
	if v.Contact != nil && v.Contact.Name != "" {
		from = v.Contact.Name + " (" + v.FromNumber + ")"
	}
	subject = "Voicemail from " + from
	if v.Urgency != nil && *v.Urgency == "high" {
		subject = "Urgent: voicemail from " + from
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s left a message of %d seconds on %s.\n", from, v.DurationSeconds, v.ReceivedAt.In(zone).Format("Monday, 2 January 2006 at 15:04 MST"))
	if v.Transcript != nil && v.Transcript.Text != nil {
		fmt.Fprintf(&b, "\nWhat was understood of it:\n\n  %s\n", *v.Transcript.Text)
	}
	if v.AudioURL != nil {
		fmt.Fprintf(&b, "\nTo hear it, dial *97 on your telephone, or fetch it with your credentials:\n%s\n", *v.AudioURL)
	}
	return subject, b.String()
}
