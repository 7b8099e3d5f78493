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

// This file joins mailboxes with prompts, users and the audit log.

// recoverMessages makes messages of what callers were saying as a crash cut them off.
func (s *Server) recoverMessages(ctx context.Context) error {
	p := s.Platform
	kept, err := p.voicemail.Recover(ctx, func(path string) (voicemail.AudioFile, error) {
		a, err := salvage(path)
		return voicemail.AudioFile{Duration: a.Duration, Size: a.Size, SHA256: a.SHA256}, err
	})
	if kept > 0 {
		p.log.Warn("a crash cut messages off", "kept", kept)
	}
	return err
}

// greet keeps a greeting that a user recorded by telephone, and has their mailbox greet with it.
func (p *Platform) greet(ctx context.Context, org, userID, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	id, err := p.audio.Import(ctx, org, "Greeting by telephone, "+time.Now().UTC().Format("2006-01-02 15:04"), "voicemail_greeting", f)
	if err != nil {
		return err
	}
	return p.users.SetGreeting(ctx, org, userID, id)
}

// mailboxLocked notes in the audit log that wrong PINs locked a mailbox, and from where they came.
func (p *Platform) mailboxLocked(ctx context.Context, org, userID string, by pbx.Info) {
	err := p.db.Tx(ctx, func(tx db.Querier) error {
		return p.audit.WritePhoneAction(ctx, tx, audit.PhoneAction{Org: org, Operation: "voicemail.pin", CallID: by.CallID, UserID: by.UserID, Number: by.From,
			Record: userID, Status: 403, Code: "locked"}, db.At(time.Now()))
	})
	if err != nil {
		p.log.Error("locked mailbox not noted", "user", userID, "err", err)
	}
}
