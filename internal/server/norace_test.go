//go:build !race

package server

// raceDetector reports whether the tests were built with the race detector.
const raceDetector = false
