package signin

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/png"
	"strings"
	"time"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"soniq/internal/platform/seal"
)

// TOTP codes (RFC 6238): six digits of HMAC-SHA-1, valid for 30 seconds.
const (
	totpPeriod         = 30
	totpSeedLength     = 20
	recoveryCodeCount  = 10
	recoveryCodeLength = 12
)

var totpOptions = hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

func newSeed() []byte {
	seed := make([]byte, totpSeedLength)
	_, _ = rand.Read(seed)
	return seed
}

// totpStep returns the time step that a code belongs to. It accepts the current step and one on each side, because
// clocks differ. It rejects steps up to the last used one (RFC 6238 §5.2), which the library does not know: it reports
// only whether a code is valid. ok is false if no step matches.
func totpStep(seed []byte, code string, now time.Time, last int64) (step int64, ok bool) {
	current, secret := now.Unix()/totpPeriod, base32Text.EncodeToString(seed)
	for _, step := range []int64{current, current - 1, current + 1} {
		if step <= last {
			continue
		}
		if valid, err := hotp.ValidateCustom(code, uint64(step), secret, totpOptions); err == nil && valid {
			return step, true
		}
	}
	return 0, false
}

// totpAddress returns the otpauth URL that authenticator apps read.
func totpAddress(seed []byte, issuer, email string) (string, error) {
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: email, Secret: seed, Period: totpPeriod,
		Digits: totpOptions.Digits, Algorithm: totpOptions.Algorithm})
	if err != nil {
		return "", fmt.Errorf("write address of the authenticator: %w", err)
	}
	return key.URL(), nil
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
