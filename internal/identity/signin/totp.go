package signin

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"html/template"
	"image/png"
	"net/url"
	"strings"
	"time"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"

	"soniq/internal/platform/seal"
)

// TOTP codes (RFC 6238): six digits of HMAC-SHA-1, valid for 30 seconds.
const (
	totpPeriod         = 30
	totpDigits         = 1_000_000
	totpSeedLength     = 20
	recoveryCodeCount  = 10
	recoveryCodeLength = 12
)

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

func newSeed() []byte {
	seed := make([]byte, totpSeedLength)
	_, _ = rand.Read(seed)
	return seed
}

// totp returns the code of a time step (RFC 4226 §5.3).
func totp(seed []byte, step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	m := hmac.New(sha1.New, seed)
	m.Write(counter[:])
	sum := m.Sum(nil)
	at := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[at:])&0x7fffffff)%totpDigits)
}

// totpStep returns the time step that a code belongs to. It accepts the current step and one on each side, because
// clocks differ. It rejects steps up to the last used one (RFC 6238 §5.2). ok is false if no step matches.
func totpStep(seed []byte, code string, now time.Time, last int64) (step int64, ok bool) {
	current := now.Unix() / totpPeriod
	for _, step := range []int64{current, current - 1, current + 1} {
		if step > last && hmac.Equal([]byte(totp(seed, step)), []byte(code)) {
			return step, true
		}
	}
	return 0, false
}

// totpAddress returns the otpauth URL that authenticator apps read.
func totpAddress(seed []byte, issuer, email string) string {
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + issuer + ":" + email,
		RawQuery: url.Values{"secret": {base32Text.EncodeToString(seed)}, "issuer": {issuer}}.Encode()}
	return u.String()
}

// picture returns a QR code as a data URL.
func picture(text string) (template.URL, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("draw QR code: %w", err)
	}
	if code, err = barcode.Scale(code, 4*code.Bounds().Dx(), 4*code.Bounds().Dy()); err != nil {
		return "", fmt.Errorf("draw QR code: %w", err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, code); err != nil {
		return "", fmt.Errorf("draw QR code: %w", err)
	}
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())), nil
}

// newRecoveryCodes returns recovery codes of 62 bits. Each works once, in place of a lost authenticator.
func newRecoveryCodes() []string {
	all := make([]string, recoveryCodeCount)
	for i := range all {
		c := strings.ToLower(seal.Random(recoveryCodeLength))
		all[i] = c[:4] + "-" + c[4:8] + "-" + c[8:]
	}
	return all
}

// cleanCode returns a code in lower case without spaces and hyphens.
func cleanCode(code string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(strings.TrimSpace(code)))
}
