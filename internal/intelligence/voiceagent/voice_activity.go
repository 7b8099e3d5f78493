package voiceagent

import "math"

// Voice activity detection of a caller, in frames of 20 ms.
const (
	windowFrames       = 20 // frames in the window
	speechFrames       = 8  // loud frames among them from which speech has begun
	bargeInFrames      = 13 // the same while the agent speaks
	bargeInFramesEarly = 18 // the same just after the agent began: its own echo may come back

	maxFloorDB  = 50.0 // dB: louder is never noise
	marginDB    = 9.0  // speech is this much louder than noise
	minSpeechDB = 34.0 // and never below this
	floorRiseDB = 0.06 // dB per frame: 3 dB per second
)

// voiceActivity detects speech in frames of 20 ms. It follows the noise floor of the line.
type voiceActivity struct {
	floor float64
	last  [windowFrames]bool
	at    int
}

func newVoiceActivity() *voiceActivity { return &voiceActivity{floor: minSpeechDB - marginDB} }

// frame takes the next 20 ms, and reports whether they are loud.
func (a *voiceActivity) frame(pcm []int16) bool {
	db := decibels(pcm)
	if db < a.floor {
		a.floor += (db - a.floor) / 4
	} else {
		a.floor = min(a.floor+floorRiseDB, maxFloorDB)
	}
	a.floor = max(a.floor, 0)
	loud := db > max(a.floor+marginDB, minSpeechDB)
	a.last[a.at%windowFrames] = loud
	a.at++
	return loud
}

// loudFrames returns how many of the last frames were loud.
func (a *voiceActivity) loudFrames() (n int) {
	for _, is := range a.last {
		if is {
			n++
		}
	}
	return n
}

func (a *voiceActivity) reset() { a.last = [windowFrames]bool{} }

// decibels returns the level of a piece of audio; 0 is silence, 90 full scale.
func decibels(pcm []int16) float64 {
	if len(pcm) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return 10 * math.Log10(sum/float64(len(pcm))+1)
}
