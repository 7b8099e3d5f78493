// Package stir verifies the caller's number of inbound calls (STIR/SHAKEN). It checks the signature of the
// originating carrier in the Identity header of an INVITE (RFC 8224). It checks the PASSporT (RFC 8225), the certificate
// (RFC 8226) and the attestation (RFC 8588).
package stir

import (
	"context"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limits of a verification.
const (
	defaultWait = 500 * time.Millisecond // for a certificate
	maxAge      = time.Minute            // RFC 8224 §6.2: highest difference between the time of a signature and now
	maxTokens   = 4                      // signatures of a call that are verified
)

// Config configures a Verifier.
type Config struct {
	Roots  *x509.CertPool // trusted authorities of certificates
	Client *http.Client   // fetches certificates; it must not reach internal addresses, because the caller chooses the URL
	Now    func() time.Time
	Wait   time.Duration // highest time a call waits for a certificate; 0: 500 ms
}

// Verifier verifies calls. It is safe for concurrent use.
type Verifier struct {
	wait         time.Duration
	now          func() time.Time
	certificates *certCache
}

// New returns a verifier; Close ends its downloads.
func New(c Config) *Verifier {
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	return &Verifier{wait: c.Wait, now: c.Now, certificates: newCertCache(c)}
}

// Close cancels the downloads and waits until they have ended.
func (v *Verifier) Close() { v.certificates.close() }

// Result is the result of verifying a call.
type Result struct {
	Attestation string   // A, B or C (RFC 8588 §4); "" if the signature has none or is invalid
	OrigID      string   // the carrier's identifier of the origin of the call
	Certificate string   // URL of the certificate; "" if there is no signature to verify
	Failure     *Failure // nil: verified
}

// Failure is the reason for which a call is not verified.
type Failure struct {
	Code    int    // of RFC 8224 §6.2.2; 0 if it has none
	Reason  string // code for programs
	Problem string // text
}

// Error returns Problem.
func (f *Failure) Error() string { return f.Problem }

func stale(problem string) *Failure       { return &Failure{403, "stale_date", problem} }
func unsigned(problem string) *Failure    { return &Failure{428, "use_identity_header", problem} }
func unreachable(problem string) *Failure { return &Failure{436, "bad_identity_info", problem} }
func unsupported(problem string) *Failure { return &Failure{437, "unsupported_credential", problem} }
func invalid(problem string) *Failure     { return &Failure{438, "invalid_identity_header", problem} }
func pending(problem string) *Failure     { return &Failure{0, "certificate_pending", problem} }
func withheld(problem string) *Failure    { return &Failure{0, "caller_withheld", problem} }

// SignatureInvalid reports whether there is a signature and it is invalid. If none could be verified, it returns
// false.
func (r Result) SignatureInvalid() bool {
	return r.Failure != nil && (r.Failure.Code == 403 || r.Failure.Code == 437 || r.Failure.Code == 438)
}

// Verstat returns the result as the verstat parameter for telephones (3GPP TS 24.229 §7.2A.20). A telephone reads a
// plain Passed as the carrier's confirmation that the number is the caller's. Attestations B and C are no such
// confirmation, so they are named.
func (r Result) Verstat() string {
	switch {
	case r.SignatureInvalid():
		return "TN-Validation-Failed"
	case r.Failure != nil:
		return "No-TN-Validation"
	case r.Attestation == "B" || r.Attestation == "C":
		return "TN-Validation-Passed-" + r.Attestation
	}
	return "TN-Validation-Passed"
}

// Verify verifies that an authorised signer has recently signed that from calls to. The headers are the values of
// Identity, the numbers E.164. One valid signature of several is enough. It waits up to Config.Wait for certificates.
func (v *Verifier) Verify(ctx context.Context, headers []string, from, to string) Result {
	from, to = canonicalNumber(from), canonicalNumber(to)
	if len(headers) == 0 {
		return Result{Failure: unsigned("the call came without a signature")}
	}
	if from == "" {
		return Result{Failure: withheld("the caller's number is not told, so that nobody can say whether it was signed")}
	}
	ctx, cancel := context.WithTimeout(ctx, v.wait)
	defer cancel()
	first := Result{Failure: unsigned("no signature of the call is one about its caller")}
	looked := 0
	for _, h := range headers {
		r, ours := v.verify(ctx, h, from, to)
		if !ours {
			continue
		}
		if r.Failure == nil {
			return r
		}
		if looked++; looked == 1 {
			first = r
		}
		if looked == maxTokens {
			break
		}
	}
	return first
}

// verify verifies one signature. ours is false if it does not concern the caller's number, such as that of a
// diversion.
func (v *Verifier) verify(ctx context.Context, header, from, to string) (r Result, ours bool) {
	id, err := parseIdentity(header)
	if err != nil {
		return Result{Failure: err}, true
	}
	if id.ppt != "" && id.ppt != shaken {
		return Result{}, false
	}
	r.Certificate = id.info
	p, err := id.decodePassport()
	if err == nil {
		err = p.checkClaims(from, to, v.now())
	}
	if err == nil {
		err = v.verifySignature(ctx, p, from)
	}
	if r.Failure = err; err == nil {
		r.Attestation, r.OrigID = p.payload.Attest, p.payload.OrigID
	}
	return r, true
}

// checkClaims compares the signed claims with the call.
func (p *passport) checkClaims(from, to string, now time.Time) *Failure {
	switch age := now.Sub(time.Unix(p.payload.IAT, 0)); {
	case age > maxAge || age < -maxAge:
		return stale("it was not signed within a minute of now; the clock of one side may be wrong")
	case canonicalNumber(p.payload.Orig.TN) != from:
		return invalid("it was signed for another caller")
	case !slices.ContainsFunc(p.payload.Dest.TN, func(n string) bool { return to != "" && canonicalNumber(n) == to }):
		return invalid("it was signed for a call to another number")
	}
	return nil
}

// verifySignature checks that the owner of the certificate has signed, and is authorised for the number.
func (v *Verifier) verifySignature(ctx context.Context, p *passport, from string) *Failure {
	c, err := v.certificates.get(ctx, p.header.X5U)
	if err != nil {
		return err
	}
	return c.check(p, from, v.now())
}

// canonicalNumber returns a number as in signatures (RFC 8224 §8.3): digits only; "" if it is not a number.
func canonicalNumber(number string) string {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -.()", r) {
			return -1
		}
		return r
	}, strings.TrimPrefix(strings.TrimSpace(number), "+"))
	if len(digits) > 20 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits
}
