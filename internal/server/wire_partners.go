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
	"soniq/internal/platform/clock"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// Connects partners with the services that store data of child organisations.

func (p *Platform) buildPartners(now func() time.Time) {
	p.partners = partner.New(partner.Config{DB: p.db, Orgs: p.orgs, Users: p.users, Keys: p.keys, Jobs: p.jobs, Clock: clock.Func(now),
		Grace: p.config.CloseGrace, Messages: p.messages, Files: orgFiles{p}, MayDelete: p.clock.MayJobDelete})
	p.partners.Observe(caches{p})
}

// orgFiles implements partner.Files.
type orgFiles struct{ p *Platform }

// RemoveFiles implements partner.Files.
func (f orgFiles) RemoveFiles(org string) error { return f.p.eraseFiles(org) }

// caches implements partner.ErasureObserver.
type caches struct{ p *Platform }

// OrgErased implements partner.ErasureObserver.
func (c caches) OrgErased(org string) { c.p.clearCaches(org) }

// eraseFiles removes the files of an organisation: recordings, prompts and synthesised texts.
func (p *Platform) eraseFiles(org string) error {
	if !strings.HasPrefix(org, "org_") || strings.ContainsAny(org, `/\\.`) {
		return errors.New("not the id of an organisation: " + org)
	}
	return errors.Join(p.files.DeleteAll(context.Background(), org), os.RemoveAll(filepath.Join(p.config.Data, "speech", org)))
}

// clearCaches clears the caches of organisations, phones, numbers, trunks and keys.
func (p *Platform) clearCaches(string) {
	for _, subject := range []string{org.Changed, device.Changed, number.Changed, trunk.Changed, auth.Changed, user.Changed} {
		p.bus.Publish(subject, nil)
	}
}
