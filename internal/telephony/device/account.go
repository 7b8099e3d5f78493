package device

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/seal"
)

// Account is a device as SIP authentication needs it: user name and password digests. It is read for every INVITE and
// REGISTER, and cached.
type Account struct {
	OrgID      string
	DeviceID   string
	UserID     string
	Username   string
	HA1MD5     string // hex MD5(username:realm:password), RFC 7616 §3.4.2
	HA1SHA256  string // hex SHA-256(username:realm:password), RFC 8760
	WantSHA256 bool
	SRTP       string
	Codecs     []string
	// TokenGeneration is the generation of the tokens that are valid now. Connections of earlier ones belong to ended sessions.
	TokenGeneration int64
}

// Account returns the active device with the SIP user name, of any organisation; ok is false if there is none.
func (s *Service) Account(ctx context.Context, username string) (a Account, ok bool, err error) {
	username = strings.ToLower(username)
	a, err = s.accounts.Get(username, func() (Account, error) { return s.account(ctx, username) })
	if db.IsNone(err) {
		return a, false, nil
	}
	return a, err == nil, err
}

func (s *Service) account(ctx context.Context, username string) (Account, error) {
	q := s.db.Read(ctx)
	d, sealed, err := byUsername(ctx, q, username)
	if err != nil {
		return Account{}, err
	}
	generation, err := tokenGeneration(ctx, q, d)
	if err != nil {
		return Account{}, fmt.Errorf("read generation of tokens: %w", err)
	}
	a := Account{OrgID: d.OrgID, DeviceID: d.ID, UserID: d.UserID, Username: username, WantSHA256: d.SIP.Digest == "sha256",
		SRTP: d.SRTP, Codecs: d.Codecs, TokenGeneration: generation}
	open, err := s.unseal(d, sealed)
	a.HA1MD5, a.HA1SHA256 = open.md5, open.sha256
	return a, err
}

// digests holds the two digests (HA1) of a password.
type digests struct{ md5, sha256 string }

type sealedDigests struct{ md5, sha256 []byte }

// HA1 returns both digests of a password (RFC 7616 §3.4.2), in hex.
func HA1(username, realm, password string) (md5hex, sha256hex string) {
	text := []byte(username + ":" + realm + ":" + password)
	m, s := md5.Sum(text), sha256.Sum256(text)
	return hex.EncodeToString(m[:]), hex.EncodeToString(s[:])
}

const passwordLength = 28 // base62 characters, 166 bits

func (s *Service) newCredentials(d Device) (password string, sealed sealedDigests, err error) {
	password = seal.Random(passwordLength)
	var open digests
	open.md5, open.sha256 = HA1(d.SIP.Username, s.domain, password)
	if sealed.md5, err = s.sealer.Seal([]byte(open.md5), additionalData(d, "ha1_md5")); err == nil {
		sealed.sha256, err = s.sealer.Seal([]byte(open.sha256), additionalData(d, "ha1_sha256"))
	}
	if err != nil {
		return "", sealed, fmt.Errorf("seal credentials: %w", err)
	}
	return password, sealed, nil
}

func (s *Service) unseal(d Device, sealed sealedDigests) (digests, error) {
	m, err := s.sealer.Unseal(sealed.md5, additionalData(d, "ha1_md5"))
	if err != nil {
		return digests{}, fmt.Errorf("unseal credentials of %s: %w", d.ID, err)
	}
	sum, err := s.sealer.Unseal(sealed.sha256, additionalData(d, "ha1_sha256"))
	if err != nil {
		return digests{}, fmt.Errorf("unseal credentials of %s: %w", d.ID, err)
	}
	return digests{string(m), string(sum)}, nil
}

// additionalData returns the additional data of a sealed value. It binds the value to its row and column.
func additionalData(d Device, column string) []byte {
	return []byte(d.OrgID + "|devices|" + d.ID + "|" + column)
}

// newUsername returns a SIP user name that cannot be guessed and is easy to type: u and fifteen lower-case letters
// and digits, about 75 bits.
func newUsername() string { return "u" + strings.ToLower(seal.Random(15)) }
