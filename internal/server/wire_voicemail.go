package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"soniq/internal/platform/audit"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/record"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// Connects mailboxes with prompts, users and the audit log.

// finishMessagesInterval is how often messages that could not be stored are tried again.
const finishMessagesInterval = 5 * time.Second

// finishMessages stores the messages that a crash or a full disk cut off, as soon as they can be written.
func (p *Platform) finishMessages(ctx context.Context) {
	tick := clock.NewTicker(finishMessagesInterval)
	defer tick.Stop()
	failing := false
	for {
		kept, err := p.voicemail.FinishDrafts(ctx, finishMessage)
		if kept > 0 {
			p.log.Warn("voicemail messages that were cut off are stored", "kept", kept)
		}
		if err != nil && !failing && ctx.Err() == nil {
			p.log.Error("voicemail messages cannot be stored, and are tried again", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// finishMessage completes the file of a message that was cut off. Without audio the duration is 0.
func finishMessage(path string) (voicemail.AudioFile, error) {
	a, err := recoverRecording(path)
	if errors.Is(err, record.ErrNoAudio) || errors.Is(err, fs.ErrNotExist) {
		return voicemail.AudioFile{}, nil
	}
	return voicemail.AudioFile{Duration: a.Duration, Size: a.Size, SHA256: a.SHA256}, err
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
