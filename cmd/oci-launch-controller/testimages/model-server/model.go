package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// model is a language model of the smallest kind: what it says next follows from the last word alone.
type model struct {
	Name string `json:"name"`
	Sum  string `json:"sha256"`
	next map[string]string
}

// load reads the weights of every model in a folder: files NAME.json, which say of each word how much every word weighs
// as the next. No weights are a mistake.
func load(folder string) (map[string]*model, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err == nil && len(files) == 0 {
		err = errors.New("there is no file *.json in " + folder)
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string]*model)
	for _, file := range files {
		m, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		all[m.Name] = m
	}
	return all, nil
}

func read(file string) (*model, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var weights map[string]map[string]float64
	if err := json.Unmarshal(raw, &weights); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	m := &model{Name: strings.TrimSuffix(filepath.Base(file), ".json"), Sum: hex.EncodeToString(sum[:]),
		next: make(map[string]string)}
	for word, candidates := range weights {
		m.next[word] = heaviest(candidates)
	}
	return m, nil
}

// heaviest is the word that weighs most; of equals, the first in the alphabet.
func heaviest(candidates map[string]float64) (best string) {
	for word, weight := range candidates {
		if have := candidates[best]; best == "" || weight > have || weight == have && word < best {
			best = word
		}
	}
	return best
}

// complete goes on from a prompt's last word, until the model knows no next one or the answer has most words.
func (m *model) complete(prompt []string, most int) (out []string) {
	if len(prompt) == 0 {
		return nil
	}
	for word := prompt[len(prompt)-1]; len(out) < most; {
		if word = m.next[word]; word == "" {
			break
		}
		out = append(out, word)
	}
	return out
}
