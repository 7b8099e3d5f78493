package trunk

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"soniq/internal/platform/db"
)

// InboundAccount holds the digest credentials of a carrier that authenticates its calls to us.
type InboundAccount struct {
	OrgID     string
	TrunkID   string
	Username  string
	HA1MD5    string // hex MD5(username:realm:password), RFC 7616 §3.4.2
	HA1SHA256 string
}

// InboundAccount returns the trunk whose carrier authenticates with the user name; ok is false if there is none. Look
// for a device with that user name first, because devices take precedence.
func (s *Service) InboundAccount(ctx context.Context, username string) (a InboundAccount, ok bool, err error) {
	a, err = s.accounts.Get("account "+username, func() (InboundAccount, error) { return s.loadInboundAccount(ctx, username) })
	if db.IsNone(err) {
		return a, false, nil
	}
	return a, err == nil, err
}

func (s *Service) loadInboundAccount(ctx context.Context, username string) (InboundAccount, error) {
	t, err := byInboundUsername(ctx, s.db.Read(ctx), username)
	if err != nil {
		return InboundAccount{}, err
	}
	password, err := s.sealer.Unseal(t.inboundPassword, associatedData(t, "inbound_password"))
	if err != nil {
		return InboundAccount{}, fmt.Errorf("unseal inbound password of trunk %s: %w", t.ID, err)
	}
	text := []byte(username + ":" + s.realm + ":" + string(password))
	m, sum := md5.Sum(text), sha256.Sum256(text)
	return InboundAccount{OrgID: t.OrgID, TrunkID: t.ID, Username: username,
		HA1MD5: hex.EncodeToString(m[:]), HA1SHA256: hex.EncodeToString(sum[:])}, nil
}
