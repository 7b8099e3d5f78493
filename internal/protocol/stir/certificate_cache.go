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
	certTTL        = time.Hour        // time for which a certificate is used
	certRefreshAge = 50 * time.Minute // age at which it is downloaded again in the background, so that no call waits for it
	failedCertTTL  = time.Minute      // time for which an invalid certificate is not downloaded again
	maxCached      = 1000
	maxFetches     = 32 // at once
	fetchTimeout   = 2 * time.Second
	maxBody        = 64 << 10
)

// certCache caches certificates by URL.
type certCache struct {
	roots     *x509.CertPool
	client    *http.Client
	now       func() time.Time
	downloads context.Context // context of downloads; it is independent of calls
	cancel    context.CancelFunc
	running   sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	entries  map[string]*cachedCert
	fetching int
	closed   bool
}

// cachedCert is a requested certificate. Its result does not change after done is closed.
type cachedCert struct {
	done        chan struct{}
	requestedAt time.Time // time of the request
	refreshing  bool      // a refresh was started; guarded by the mutex of the cache
	credential  *credential
	failure     *Failure
}

func newCertCache(c Config) *certCache {
	s := &certCache{roots: c.Roots, client: c.Client, now: c.Now, entries: map[string]*cachedCert{}}
	s.downloads, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *certCache) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// get returns a certificate. A download continues when the context ends.
func (s *certCache) get(ctx context.Context, address string) (*credential, *Failure) {
	k := s.lookup(address)
	if k == nil {
		return nil, pending("too many certificates are being fetched")
	}
	if !k.isDone() {
		select {
		case <-k.done:
		case <-ctx.Done():
			return nil, pending("the certificate is still being fetched")
		}
	}
	return k.credential, k.failure
}

// lookup returns the entry of a certificate and starts a download if needed; nil if there are too many downloads.
func (s *certCache) lookup(address string) *cachedCert {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.entries[address], s.now()
	switch {
	case k == nil || k.expired(now):
		if k = s.fetch(address, nil); k != nil {
			s.evictOldest()
			s.entries[address] = k
		}
	case !k.refreshing && now.Sub(k.requestedAt) > certRefreshAge:
		k.refreshing = s.fetch(address, k) != nil
	}
	return k
}

// expired reports whether the entry is too old to be used.
func (k *cachedCert) expired(now time.Time) bool {
	age := now.Sub(k.requestedAt)
	return k.isDone() && (age > certTTL || k.failure != nil && age > failedCertTTL)
}

// isDone reports whether the download has ended.
func (k *cachedCert) isDone() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// fetch starts the download of a certificate; nil if there are too many downloads. A valid result replaces the old
// entry; an invalid one does not, so that the old one is used until it expires. The caller holds the lock.
func (s *certCache) fetch(address string, old *cachedCert) *cachedCert {
	if s.closed || s.fetching == maxFetches {
		return nil
	}
	k := &cachedCert{done: make(chan struct{}), requestedAt: s.now()}
	s.fetching++
	s.running.Go(func() {
		k.credential, k.failure = s.download(address)
		close(k.done)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetching--
		if old != nil && k.failure == nil && s.entries[address] == old {
			s.entries[address] = k
		}
	})
	return k
}

// evictOldest removes an entry if the cache is full: the oldest failure, so that a caller with many bad addresses does
// not remove the certificates of others, else the oldest. Calls that wait for it have a pointer to it. The caller holds
// the lock.
func (s *certCache) evictOldest() {
	if len(s.entries) < maxCached {
		return
	}
	oldest := ""
	for a, k := range s.entries {
		if oldest == "" || k.goesBefore(s.entries[oldest]) {
			oldest = a
		}
	}
	delete(s.entries, oldest)
}

// goesBefore reports whether an entry is removed before another.
func (k *cachedCert) goesBefore(o *cachedCert) bool {
	if k.failed() != o.failed() {
		return k.failed()
	}
	return k.requestedAt.Before(o.requestedAt)
}

func (k *cachedCert) failed() bool { return k.isDone() && k.failure != nil }

func (s *certCache) download(address string) (*credential, *Failure) {
	ctx, cancel := context.WithTimeout(s.downloads, fetchTimeout)
	defer cancel()
	text, err := s.read(ctx, address)
	if err != nil {
		return nil, unreachable("the certificate cannot be fetched: " + err.Error())
	}
	return readCredential(text, s.roots, s.now())
}

func (s *certCache) read(ctx context.Context, address string) ([]byte, error) {
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
