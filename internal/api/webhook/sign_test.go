package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The vectors were made by openssl dgst -sha256 -hmac, not by this code; that of Standard Webhooks is the one of its
// specification.
const vector = "1bc68b973444014f78a7da88fc47ab856f474bcb22dfb1c40e6437a3eac1caed"

func TestSign_Vectors(t *testing.T) {
	t.Parallel()
	if got := bodySignature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"event":"call.ended","data":{"call_id":"call_1"}}`); got != vector {
		t.Errorf("digest %s, want %s", got, vector)
	}
	got := standardSignature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`)
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("Standard Webhooks %s, want %s", got, want)
	}
}

func TestSign_BothSecretsDuringRotation(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	k := secrets{newSecret(), newSecret()}
	k.sign(h, "x-service", "evt_1", "{}", time.Unix(5, 0))
	if h["x-service-signature"][0] != bodySignature(k.current, "{}") || h["x-service-signature-previous"][0] != bodySignature(k.previous, "{}") ||
		h["webhook-signature"][0] != standardSignature(k.current, "evt_1", 5, "{}")+" "+standardSignature(k.previous, "evt_1", 5, "{}") ||
		h["webhook-timestamp"][0] != "5" || h["webhook-id"][0] != "evt_1" {
		t.Errorf("headers %v", h)
	}
}

func TestNewSecret_LongAndUnique(t *testing.T) {
	t.Parallel()
	a, b := newSecret(), newSecret()
	if a == b || !strings.HasPrefix(a, "whsec_") || len(a) != len("whsec_")+44 || secretHint(a) != a[len(a)-4:] {
		t.Errorf("%s, %s", a, b)
	}
}
