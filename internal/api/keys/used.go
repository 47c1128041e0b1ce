package keys

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"exchange-gateway/internal/regular"
)

// usedFile keeps when each key was last used, beside the keys file. All gateways that share the directory write to it, each
// at most once a minute and only if one of its keys was used since: what it says may be a minute old.
const (
	usedFile  = "keys-used.json"
	keepEvery = time.Minute
)

// maxUsed bounds the file: more keys than a keys file has room for. Beyond it the keys that were not used for longest are
// left out. An entry takes at most 62 bytes, so the file stays below maxFile.
const maxUsed = 10_000

// ahead is how far the clock of another gateway may be ahead. A later time would otherwise stay for good, for the latest
// counts.
const ahead = time.Hour

// errLocked is another program that is changing a file of the directory.
var errLocked = errors.New("another program is changing it")

type usedForm struct {
	Used map[string]time.Time `json:"used"` // by the key's id, to the second
}

// LastUses reads when the keys of the file at path were last used, by their id. A key that is not in it was not used since
// this is kept. No file is no uses.
func LastUses(path string) (map[string]time.Time, error) {
	file := filepath.Join(filepath.Dir(path), usedFile)
	text, err := regular.Read(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	uses, err := ParseUses(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return uses, nil
}

// ParseUses reads what LastUses does. Ids that cannot be are left out.
func ParseUses(text []byte) (map[string]time.Time, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("over %d bytes", maxFile)
	}
	var form usedForm
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, errors.New("not what a gateway wrote")
	}
	maps.DeleteFunc(form.Used, func(id string, at time.Time) bool { return !validID(id) || at.IsZero() })
	return form.Used, nil
}

// keeper writes last uses down. One goroutine uses it.
type keeper struct {
	ring    *Ring
	kept    map[string]int64 // Unix seconds that were written, by id
	failing bool
}

// keep writes down what was used since the last time, or is in use for as long as it is open. What cannot be written is tried again the next time, and logged once
// until it can be.
func (k *keeper) keep(now time.Time) {
	uses := make(map[string]int64)
	fresh := false
	for id, key := range k.ring.held.Load().keys {
		if at := key.life.lastUse(now); at != 0 {
			uses[id] = at
			fresh = fresh || at > k.kept[id]
		}
	}
	if !fresh {
		return
	}
	switch err := writeUses(k.ring.path, uses, now); {
	case err == nil:
		k.kept, k.failing = uses, false
	case errors.Is(err, errLocked): // it will not be there in a minute
	case !k.failing:
		k.failing = true
		k.ring.log.Warn("last uses of keys not kept, gateway key list does not know them", slog.Any("err", err))
	}
}

// writeUses adds uses to the file of the keys file at path.
func writeUses(path string, uses map[string]int64, now time.Time) error {
	unlock, err := tryLock(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	all, err := LastUses(path)
	if err != nil || all == nil {
		all = make(map[string]time.Time) // none yet, or rubbish that gives way
	}
	maps.DeleteFunc(all, func(_ string, at time.Time) bool { return at.Sub(now) > ahead })
	for id, at := range uses {
		if t := time.Unix(at, 0).UTC(); t.After(all[id]) {
			all[id] = t
		}
	}
	text, err := json.Marshal(usedForm{Used: latest(all)})
	if err != nil {
		return err
	}
	return replace(filepath.Join(filepath.Dir(path), usedFile), append(text, '\n'))
}

// latest cuts uses to as many as are kept.
func latest(all map[string]time.Time) map[string]time.Time {
	if len(all) <= maxUsed {
		return all
	}
	ids := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[b].Compare(all[a]), cmp.Compare(a, b)) })
	for _, id := range ids[maxUsed:] {
		delete(all, id)
	}
	return all
}
