//go:build race

package media

// raceDetector makes sync.Pool forget things, which looks like allocations.
const raceDetector = true
