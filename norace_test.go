//go:build !race

package main

// raceDetector reports whether the tests were built with the race detector.
const raceDetector = false
