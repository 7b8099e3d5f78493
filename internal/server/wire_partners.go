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
	"soniq/internal/platform/job"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// This file joins partners with the services that store data of child organisations.

func (h *Platform) buildPartners(now func() time.Time) {
	h.orgs.Stored = partner.Stored
	h.partners = partner.New(partner.Config{DB: h.db, Orgs: h.orgs, Users: h.users, Keys: h.keys, Jobs: h.jobs, Now: now,
		Grace: h.config.CloseGrace, Files: h.eraseFiles, Erased: h.forgetOrg})
}

// eraseFiles removes the files of an organisation: recordings, sounds, and texts that were spoken for it.
func (h *Platform) eraseFiles(org string) error {
	if !strings.HasPrefix(org, "org_") || strings.ContainsAny(org, `/\\.`) {
		return errors.New("not the id of an organisation: " + org)
	}
	return errors.Join(h.files.DeleteAll(context.Background(), org), os.RemoveAll(filepath.Join(h.config.Data, "speech", org)))
}

// forgetOrg empties what is kept in memory of organisations, phones, numbers, trunks and keys, after one is gone.
func (h *Platform) forgetOrg(string) {
	for _, subject := range []string{org.Changed, device.Changed, number.Changed, trunk.Changed, auth.Changed, user.Changed} {
		h.bus.Publish(subject, nil)
	}
}

// startPartners erases organisations whose time has come.
func (n *Server) startPartners(ctx context.Context) error {
	h := n.Platform
	n.leaving = &job.Runner{DB: h.db, Queue: h.jobs, Name: partner.Queue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 1, Timeout: time.Hour}}
	h.partners.Handle(n.leaving)
	return n.leaving.Start(ctx)
}
