//go:build race

package media

// raceDetector is true if the race detector runs. It makes sync.Pool drop items, which looks like allocations.
const raceDetector = true
