package stir

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Limits of downloads and of the cache.
const (
	keep       = time.Hour        // time for which a certificate is used
	renew      = 50 * time.Minute // age at which it is downloaded again in the background, so that no call waits for it
	keepFailed = time.Minute      // time for which an invalid certificate is not downloaded again
	maxKept    = 1000
	maxFetches = 32 // at once
	fetchTime  = 2 * time.Second
	maxBody    = 64 << 10
)

// certCache caches certificates by URL.
type store struct {
	roots   *x509.CertPool
	client  *http.Client
	now     func() time.Time
	life    context.Context // context of downloads; it is independent of calls
	end     context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	kept     map[string]*kept
	fetching int
	closed   bool
}

// cachedCert is a requested certificate. Its result does not change after done is closed.
type kept struct {
	done    chan struct{}
	at      time.Time // time of the request
	renewed bool      // a refresh was started; guarded by the mutex of the cache
	is      *credential
	failure *Failure
}

func newStore(c Config) *store {
	s := &store{roots: c.Roots, client: c.Client, now: c.Now, kept: map[string]*kept{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

func (s *store) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.running.Wait()
}

// get returns a certificate. A download continues when the context ends.
func (s *store) get(ctx context.Context, address string) (*credential, *Failure) {
	k := s.ask(address)
	if k == nil {
		return nil, pending("too many certificates are being fetched")
	}
	if !k.known() {
		select {
		case <-k.done:
		case <-ctx.Done():
			return nil, pending("the certificate is still being fetched")
		}
	}
	return k.is, k.failure
}

// lookup returns the entry of a certificate and starts a download if needed; nil if there are too many downloads.
func (s *store) ask(address string) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.kept[address], s.now()
	switch {
	case k == nil || k.over(now):
		if k = s.fetch(address, nil); k != nil {
			s.makeRoom()
			s.kept[address] = k
		}
	case !k.renewed && now.Sub(k.at) > renew:
		k.renewed = s.fetch(address, k) != nil
	}
	return k
}

// expired reports whether the entry is too old to be used.
func (k *kept) over(now time.Time) bool {
	age := now.Sub(k.at)
	return k.known() && (age > keep || k.failure != nil && age > keepFailed)
}

// isDone reports whether the download has ended.
func (k *kept) known() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// fetch starts the download of a certificate; nil if there are too many downloads. A valid result replaces the old
// entry; an invalid one does not, so that the old one is used until it expires. The caller holds the lock.
func (s *store) fetch(address string, old *kept) *kept {
	if s.closed || s.fetching == maxFetches {
		return nil
	}
	k := &kept{done: make(chan struct{}), at: s.now()}
	s.fetching++
	s.running.Go(func() {
		k.is, k.failure = s.download(address)
		close(k.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetching--
		if old != nil && k.failure == nil && s.kept[address] == old {
			s.kept[address] = k
		}
	})
	return k
}

// evictOldest removes the oldest entry if the cache is full. Calls that wait for it have a pointer to it. The caller
// holds the lock.
func (s *store) makeRoom() {
	if len(s.kept) < maxKept {
		return
	}
	oldest := ""
	for a, k := range s.kept {
		if oldest == "" || k.at.Before(s.kept[oldest].at) {
			oldest = a
		}
	}
	delete(s.kept, oldest)
}

func (s *store) download(address string) (*credential, *Failure) {
	ctx, cancel := context.WithTimeout(s.life, fetchTime)
	defer cancel()
	text, err := s.read(ctx, address)
	if err != nil {
		return nil, unreachable("the certificate cannot be fetched: " + err.Error())
	}
	return readCredential(text, s.roots, s.now())
}

func (s *store) read(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/pem-certificate-chain, application/x-pem-file;q=0.9, */*;q=0.5")
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer was %d", answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err == nil && len(text) > maxBody {
		err = fmt.Errorf("it is larger than %d bytes", maxBody)
	}
	return text, err
}
