package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/partner"
	"soniq/internal/identity/user"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// This file joins partners with the services that store data of child organisations.

func (p *Platform) buildPartners(now func() time.Time) {
	p.orgs.StoredBytes = partner.StoredBytes
	p.partners = partner.New(partner.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Keys: p.keys, Jobs: p.jobs, Now: now,
		Grace: p.config.CloseGrace, RemoveFiles: p.eraseFiles, Erased: p.forgetOrg})
}

// eraseFiles removes the files of an organisation: recordings, sounds, and texts that were spoken for it.
func (p *Platform) eraseFiles(org string) error {
	if !strings.HasPrefix(org, "org_") || strings.ContainsAny(org, `/\\.`) {
		return errors.New("not the id of an organisation: " + org)
	}
	return errors.Join(p.files.DeleteAll(context.Background(), org), os.RemoveAll(filepath.Join(p.config.Data, "speech", org)))
}

// forgetOrg empties what is kept in memory of organisations, phones, numbers, trunks and keys, after one is gone.
func (p *Platform) forgetOrg(string) {
	for _, subject := range []string{org.Changed, device.Changed, number.Changed, trunk.Changed, auth.Changed, user.Changed} {
		p.bus.Publish(subject, nil)
	}
}
