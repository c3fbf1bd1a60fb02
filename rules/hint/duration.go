package hint

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const day = 24 * time.Hour

// spaced holds the unit words of scripts that put letters between words; a unit is a whole word there.
var spaced = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": day, "day": day, "days": day, "w": 7 * day, "week": 7 * day, "weeks": 7 * day,
	// German
	"sekunde": time.Second, "sekunden": time.Second, "minuten": time.Minute, "stunde": time.Hour, "stunden": time.Hour,
	"tag": day, "tage": day, "tagen": day,
	// French
	"seconde": time.Second, "secondes": time.Second, "heure": time.Hour, "heures": time.Hour, "jour": day, "jours": day,
	// Spanish, Portuguese, Italian
	"segundo": time.Second, "segundos": time.Second, "minuto": time.Minute, "minutos": time.Minute, "hora": time.Hour,
	"horas": time.Hour, "día": day, "días": day, "dia": day, "dias": day,
	"secondi": time.Second, "secondo": time.Second, "minuti": time.Minute, "ora": time.Hour, "ore": time.Hour,
	"giorno": day, "giorni": day,
	// Vietnamese, Indonesian
	"giây": time.Second, "phút": time.Minute, "giờ": time.Hour, "ngày": day,
	"detik": time.Second, "menit": time.Minute, "jam": time.Hour, "hari": day,
	// Russian
	"с": time.Second, "сек": time.Second, "секунду": time.Second, "секунды": time.Second, "секунд": time.Second,
	"мин": time.Minute, "минуту": time.Minute, "минуты": time.Minute, "минут": time.Minute,
	"ч": time.Hour, "час": time.Hour, "часа": time.Hour, "часов": time.Hour, "день": day, "дня": day, "дней": day,
	// Arabic
	"ثانية": time.Second, "ثواني": time.Second, "ثوان": time.Second, "ثوانٍ": time.Second,
	"دقيقة": time.Minute, "دقائق": time.Minute, "ساعة": time.Hour, "ساعات": time.Hour, "يوم": day, "أيام": day,
}

// joined holds the unit words of scripts without spaces, longest first: what follows may be a letter.
var joined = []struct {
	word string
	unit time.Duration
}{
	{"毫秒", time.Millisecond}, {"秒钟", time.Second}, {"秒", time.Second}, {"分钟", time.Minute}, {"分鐘", time.Minute},
	{"小时", time.Hour}, {"小時", time.Hour}, {"個小時", time.Hour}, {"个小时", time.Hour}, {"時間", time.Hour},
	{"分", time.Minute}, {"天", day}, {"日", day}, {"周", 7 * day},
	{"초", time.Second}, {"분", time.Minute}, {"시간", time.Hour}, {"일", day},
}

// length reads a length of time at the start of s ("1h23m31s", "3hr 4min", "10 days 19 hours", "1,5 Minuten", "60 秒")
// and how many bytes it took. A number without a known unit ends it, and is none by itself.
func length(s string) (time.Duration, int, bool) {
	var total time.Duration
	used, found := 0, false
	for {
		gap := used
		if found {
			gap += separator(s[used:])
		}
		whole, frac, n := number(s[gap:])
		if n == 0 {
			break
		}
		at := gap + n
		at += blanks(s[at:])
		unit, m := unitWord(s[at:])
		if m == 0 {
			break
		}
		total = sum(total, times(whole, frac, unit))
		used, found = at+m, true
	}
	return total, used, found
}

// lengthOnly reads s as one length of time and nothing else.
func lengthOnly(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	d, n, ok := length(strings.ToLower(s))
	return d, ok && n == len(strings.ToLower(s))
}

// separator is how many bytes may stand between two parts of one length: blanks, a comma, one word for "and".
func separator(s string) int {
	n := blanks(s)
	if strings.HasPrefix(s[n:], ",") {
		n++
		n += blanks(s[n:])
	}
	for _, and := range []string{"and ", "und ", "et ", "y ", "e ", "и "} {
		if strings.HasPrefix(s[n:], and) {
			return n + len(and) + blanks(s[n+len(and):])
		}
	}
	return n
}

func blanks(s string) int { return len(s) - len(strings.TrimLeft(s, " \t\u00a0")) }

// number reads digits with an optional decimal part: the whole part (huge ones are cut), the fraction, the bytes taken.
func number(s string) (whole int64, frac float64, n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	if n == 0 {
		return 0, 0, 0
	}
	whole, err := strconv.ParseInt(s[:n], 10, 64)
	if err != nil {
		whole = math.MaxInt64
	}
	if n+1 >= len(s) || s[n] != '.' && s[n] != ',' || s[n+1] < '0' || s[n+1] > '9' {
		return whole, 0, n
	}
	end := n + 1
	for end < len(s) && '0' <= s[end] && s[end] <= '9' {
		end++
	}
	if s[n] == ',' && end-n == 4 { // 62,056: thousands
		return sumInt(whole, s[n+1:end]), 0, end
	}
	frac, _ = strconv.ParseFloat("0."+s[n+1:end], 64)
	return whole, frac, end
}

func sumInt(whole int64, thousands string) int64 {
	t, _ := strconv.ParseInt(thousands, 10, 64)
	if whole > 1e12 {
		return whole
	}
	return whole*1000 + t
}

// unitWord reads a unit at the start of s and how many bytes it took.
func unitWord(s string) (time.Duration, int) {
	for _, j := range joined {
		if strings.HasPrefix(s, j.word) {
			return j.unit, len(j.word)
		}
	}
	end := 0
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) {
			break
		}
		end += size
	}
	unit, ok := spaced[s[:end]]
	if !ok {
		return 0, 0
	}
	return unit, end
}

// times is whole.frac units, cut where a Duration ends.
func times(whole int64, frac float64, unit time.Duration) time.Duration {
	if whole > int64(math.MaxInt64/unit)-1 {
		return math.MaxInt64
	}
	return time.Duration(whole)*unit + time.Duration(math.Round(frac*float64(unit)))
}

func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
