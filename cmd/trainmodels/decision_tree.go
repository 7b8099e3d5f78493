package main

import "math"

// sample is the context of a letter, from four letters before it to four after it (26 means none), and its sound.
type sample struct {
	around [9]uint8
	sound  uint8
}

func sampleOf(letters string, at, sound int) sample {
	s := sample{sound: uint8(sound)}
	for k := range s.around {
		s.around[k] = 26
		if i := at + k - 4; i >= 0 && i < len(letters) {
			s.around[k] = letters[i] - 'a'
		}
	}
	return s
}

// treeBuilder builds the decision tree of a letter, in the format of sounds.bin.
type treeBuilder struct {
	minSamples int // minimum of samples per branch
	sounds     int
	nodes      []byte
}

// grow appends the tree that separates samples by sound.
func (g *treeBuilder) grow(all []sample) {
	at := len(g.nodes)
	q, gain := g.question(all)
	if gain <= 0 {
		g.nodes = append(g.nodes, 255, byte(g.mostCommon(all)), 0)
		return
	}
	var yes, no []sample
	for _, s := range all {
		if int(s.around[q/27]) == q%27 {
			yes = append(yes, s)
		} else {
			no = append(no, s)
		}
	}
	g.nodes = append(g.nodes, byte(q), 0, 0)
	g.grow(yes)
	next := len(g.nodes) / 3
	g.nodes[at+1], g.nodes[at+2] = byte(next), byte(next>>8)
	g.grow(no)
}

// mostCommon returns the most common sound.
func (g *treeBuilder) mostCommon(all []sample) (sound int) {
	count := make([]int, g.sounds)
	for _, s := range all {
		if count[s.sound]++; count[s.sound] > count[sound] {
			sound = int(s.sound)
		}
	}
	return sound
}

// leastGain is the minimum information gain of a question, in nats.
const leastGain = 4

// question returns the question with the largest gain; gain is 0 if none has enough.
func (g *treeBuilder) question(all []sample) (best int, gain float64) {
	if len(all) < 2*g.minSamples {
		return 0, 0
	}
	counts := make([][]int, 9*27)
	sizes := make([]int, 9*27)
	total := make([]int, g.sounds)
	for _, s := range all {
		total[s.sound]++
		for k, letter := range s.around {
			q := k*27 + int(letter)
			if counts[q] == nil {
				counts[q] = make([]int, g.sounds)
			}
			counts[q][s.sound]++
			sizes[q]++
		}
	}
	whole := entropy(total, nil, len(all))
	for q, count := range counts {
		if q/27 == 4 || count == nil || sizes[q] < g.minSamples || len(all)-sizes[q] < g.minSamples {
			continue
		}
		if v := whole - entropy(count, nil, sizes[q]) - entropy(total, count, len(all)-sizes[q]); v > leastGain && v > gain {
			best, gain = q, v
		}
	}
	return best, gain
}

// entropy returns the entropy of counts minus without, times the number of samples, in nats.
func entropy(count, without []int, size int) (sum float64) {
	for i, n := range count {
		if without != nil {
			n -= without[i]
		}
		if n > 0 {
			sum -= float64(n) * math.Log(float64(n)/float64(size))
		}
	}
	return sum
}
