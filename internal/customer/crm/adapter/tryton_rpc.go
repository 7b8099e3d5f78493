package adapter

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"soniq/internal/platform/strictjson"
)

// trytonSession is a login session of Tryton. It is safe for concurrent use.
type trytonSession struct {
	mu  sync.Mutex // guards key, and is held during a login
	key string     // "" before the login
}

// errSessionExpired means that Tryton does not accept the session any more.
var errSessionExpired = errors.New("the session has expired")

// call calls a method. It logs in if necessary, and once more if the session has expired.
func (t *tryton) call(ctx context.Context, method string, to any, params ...any) error {
	for again := false; ; again = true {
		key, err := t.login(ctx)
		if err != nil {
			return err
		}
		err = t.post(ctx, key, method, to, append(params, map[string]any{}))
		if !errors.Is(err, errSessionExpired) {
			return err
		}
		if again {
			return fmt.Errorf("%w: it is not allowed", ErrAuth)
		}
		t.session.forget(key)
	}
}

// login returns the session key. Concurrent callers wait for one login.
func (t *tryton) login(ctx context.Context) (string, error) {
	s := &t.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != "" || ctx.Err() != nil {
		return s.key, ctx.Err()
	}
	var result []any // the id of the user, and the session
	err := t.post(ctx, "", "common.db.login", &result, []any{t.s.Username, map[string]any{"password": t.s.Password}, "en"})
	if errors.Is(err, errSessionExpired) || err == nil && len(result) != 2 {
		return "", fmt.Errorf("%w: user name or password is wrong", ErrAuth)
	}
	if err != nil {
		return "", err
	}
	s.key = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s:%v:%v", t.s.Username, result[0], result[1]))
	return s.key, nil
}

// forget deletes an expired session key, unless another login has replaced it.
func (s *trytonSession) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == key {
		s.key = ""
	}
}

// post sends one request. An answer without a result is an error of the method.
func (t *tryton) post(ctx context.Context, key, method string, to any, params []any) error {
	body, err := json.Marshal(map[string]any{"id": 1, "method": method, "params": params})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "soniq")
	if key != "" {
		r.Header.Set("Authorization", "Session "+key)
	}
	answer, err := t.client.Do(r)
	if err != nil {
		return WithoutURL(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return WithoutURL(ctx, err)
	}
	if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
		return errSessionExpired
	}
	if err := statusError(answer); err != nil {
		return err
	}
	return readRPC(text, to)
}

func readRPC(text []byte, to any) error {
	var out struct {
		Result json.RawMessage   `json:"result"`
		Error  []json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(strictjson.WithoutDamaged(text), &out); err != nil {
		return errors.New("the answer is not one of Tryton's")
	}
	if len(out.Error) > 0 {
		return rpcError(out.Error)
	}
	if err := json.Unmarshal(out.Result, to); err != nil {
		return errors.New("the answer is not one of Tryton's")
	}
	return nil
}

// rpcError converts the error of a method. Errors that a person can fix are ErrRefused; the others are retried.
func rpcError(e []json.RawMessage) error {
	var kind, said string
	_ = json.Unmarshal(e[0], &kind)
	if len(e) > 1 {
		var parts []any
		if json.Unmarshal(e[1], &parts) == nil && len(parts) > 0 {
			said, _ = parts[0].(string)
		}
	}
	if kind == "UserError" || kind == "UserWarning" {
		return fmt.Errorf("%w: %s", ErrRefused, said)
	}
	return fmt.Errorf("the system answered %s", kind)
}
