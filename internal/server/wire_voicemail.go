package server

import (
	"context"
	"os"
	"time"

	"soniq/internal/platform/audit"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// Connects mailboxes with prompts, users and the audit log.

// recoverMessages stores the messages that callers were leaving when a crash cut them off.
func (s *Server) recoverMessages(ctx context.Context) error {
	p := s.Platform
	kept, err := p.voicemail.Recover(ctx, func(path string) (voicemail.AudioFile, error) {
		a, err := recoverRecording(path)
		return voicemail.AudioFile{Duration: a.Duration, Size: a.Size, SHA256: a.SHA256}, err
	})
	if kept > 0 {
		p.log.Warn("a crash cut messages off", "kept", kept)
	}
	return err
}

// SetGreeting stores a greeting that a user recorded by phone, and activates it.
func (d routingDependencies) SetGreeting(ctx context.Context, org, userID, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	id, err := d.p.prompts.Import(ctx, org, "Greeting by telephone, "+time.Now().UTC().Format("2006-01-02 15:04"), "voicemail_greeting", f)
	if err != nil {
		return err
	}
	return d.p.users.SetGreeting(ctx, org, userID, id)
}

// MailboxLocked writes to the audit log that wrong PINs locked a mailbox, and from which number they came.
func (d routingDependencies) MailboxLocked(ctx context.Context, org, userID string, by pbx.Info) {
	err := d.p.db.Tx(ctx, func(tx db.Querier) error {
		return d.p.audit.WritePhoneAction(ctx, tx, audit.PhoneAction{Org: org, Operation: "voicemail.pin", CallID: by.CallID,
			UserID: by.UserID, Number: by.From, Record: userID, Status: 403, Code: "locked"}, db.At(time.Now()))
	})
	if err != nil {
		d.p.log.Error("locked mailbox not noted", "user", userID, "err", err)
	}
}
