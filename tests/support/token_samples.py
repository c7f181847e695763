"""Texts whose tokens are counted, in two sets that prove different things.

The estimate was fitted to other texts, but the seen ones and those in other scripts were looked
at while its numbers were still being changed: that it does well on them says little. The held-out
ones were written when it was finished, counted once, and kept as they were, all of them; nothing
was changed for their sake. Whoever changes the estimate after looking at them writes new ones.
"""

from collections.abc import Mapping


def _by_name(**kinds: Mapping[str, str]) -> dict[str, str]:
    return {f"{kind}-{name}": text for kind, ones in kinds.items() for name, text in ones.items()}


_SEEN_ENGLISH = {
    "letter": (
        "Dear Marta, thank you for the long letter. The garden survived the storm better than "
        "the fence did, and Tomasz has been out there since Saturday with a hammer and very "
        "little patience. We would love to have you here in August, when the plums are ripe; "
        "bring the children, there is room enough under the roof. Grandmother asks every week "
        "whether you still play the violin, and I never know what to answer her."
    ),
    "report": (
        "The committee examined three proposals for the renovation of the railway station. "
        "The first keeps the historic façade and replaces everything behind it. The second "
        "demolishes the eastern wing, which engineers consider beyond repair. The third, and "
        "by far the cheapest, postpones the decision until ridership figures for 2027 have been "
        "published. Representatives of the municipality criticised the absence of an independent "
        "environmental assessment."
    ),
    "chat": (
        "hey, are you coming tonight? we're meeting at the usual place around 8, but I might be "
        "late because my boss wants to talk about the budget again... anyway, bring a jacket, "
        "it's going to be cold. Oh and could you ask Sam if he still has my charger? I haven't "
        "seen it since the trip and my phone is almost dead."
    ),
    "story": (
        "Nobody in the village remembered who had built the lighthouse so far from the sea. It "
        "stood on the hill above the orchards, and every evening an old woman climbed its "
        "hundred and twelve steps to light a lamp that no ship would ever notice. When the boy "
        "finally asked her why, she laughed and told him that ships were not the only things "
        "that lose their way in the dark."
    ),
}
_SEEN_CHINESE = {
    "letter": (
        "亲爱的小林：好久没有给你写信了。这个夏天我们全家去了青岛，每天早上都去海边散步，孩子们最喜欢"
        "捡贝壳。回来以后工作特别忙，公司换了新的系统，大家都要重新学习。你上次说想来北京看看，如果十月"
        "有时间，一定要住在我家，我们可以一起去爬长城。祝你身体健康，一切顺利。"
    ),
    "report": (
        "本市昨天公布了新的公共交通计划。根据计划，到二〇三〇年，地铁线路将增加到十五条，覆盖所有主要的"
        "居民区。交通部门负责人表示，资金问题已经基本解决，但是部分路段的环境评估还没有完成。专家认为，"
        "如果工程按时开工，市民每天的通勤时间平均可以减少二十分钟。"
    ),
    "chat": (
        "今天下班以后你有空吗？我想去新开的那家火锅店试试，听同事说味道不错，就是排队的人有点多。"
        "要是你不想吃辣的，我们也可以点鸳鸯锅。对了，上次借你的那本书我还没看完，下个星期再还给你行吗？"
    ),
    "story": (
        "村里没有人记得那座灯塔是谁建的。它站在离海很远的山坡上，每天傍晚，一位老人都要走上一百多级台阶，"
        "点亮一盏没有船会看见的灯。有一天，一个男孩问她为什么这样做。老人笑着说，会在黑夜里迷路的，不只是船。"
    ),
    "recipe": (
        "番茄炒蛋的做法很简单。先把三个鸡蛋打散，加一点盐；番茄洗干净，切成小块。锅里放油，油热以后倒入"
        "蛋液，炒到半熟就盛出来。再放番茄，炒出汁以后加一小勺糖，最后把鸡蛋放回去，翻炒几下就可以吃了。"
    ),
    "manual": (
        "首次使用前，请将设备连接电源并充电至少四小时。长按电源键三秒即可开机。如果指示灯显示红色，说明"
        "电池电量不足；显示绿色表示充电完成。请勿在潮湿或高温的环境中使用本产品，以免发生危险。"
    ),
}
_SEEN_CODE = {
    "python": '''
class Basket:
    """Things somebody means to buy."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._lines: dict[str, int] = {}

    def add(self, article: str, pieces: int = 1) -> None:
        if pieces < 1:
            raise ValueError(f"cannot add {pieces} of {article!r}")
        self._lines[article] = self._lines.get(article, 0) + pieces

    def total(self, prices: Mapping[str, Decimal]) -> Decimal:
        return sum((prices[name] * n for name, n in self._lines.items()), Decimal(0))
''',
    "typescript": """
export async function loadOrders(userId: string, since?: Date): Promise<Order[]> {
  const query = new URLSearchParams({ user: userId, limit: "50" });
  if (since) {
    query.set("since", since.toISOString());
  }
  const response = await fetch(`/api/orders?${query}`, { credentials: "include" });
  if (!response.ok) {
    throw new ApiError(response.status, await response.text());
  }
  const { items } = (await response.json()) as { items: RawOrder[] };
  return items.map((raw) => ({ ...raw, createdAt: new Date(raw.created_at) }));
}
""",
    "sql": """
SELECT c.customer_id, c.name, count(o.order_id) AS orders, sum(o.amount) AS revenue
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.customer_id AND o.status <> 'cancelled'
WHERE c.created_at >= DATE '2026-01-01'
GROUP BY c.customer_id, c.name
HAVING count(o.order_id) > 3
ORDER BY revenue DESC NULLS LAST
LIMIT 20;
""",
    "go": """
func (s *Server) handleUpload(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, s.maxBytes)
	file, header, err := r.FormFile("document")
	if err != nil {
		http.Error(w, "no document", http.StatusBadRequest)
		return
	}
	defer file.Close()
	id, err := s.store.Save(r.Context(), header.Filename, file)
	if err != nil {
		s.log.Error("saving failed", "error", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, id)
}
""",
    "json": """
{"id": "ord_81273", "customer": {"name": "Ana Costa", "email": "ana@example.org"},
 "lines": [{"sku": "TEA-GREEN-250", "quantity": 2, "price": 7.9},
           {"sku": "POT-CLAY", "quantity": 1, "price": 34.0}],
 "shipping": {"method": "express", "address": null}, "paid": true}
""",
}
_SEEN_MIXED = {
    "review": (
        "这个函数有两个问题：第一，`load_orders()` 没有检查 user_id 是否为空；第二，返回值的类型"
        "应该是 `list[Order]` 而不是 dict。Could you also rename `tmp` to something "
        "meaningful? 谢谢！\n"
        "```python\nif not user_id:\n    raise ValueError('user_id is empty')\n```"
    ),
    "ticket": (
        "用户反馈：登录页面在 iOS 18 上无法加载。日志显示 `TimeoutError: request took 30012 ms`，"
        "possibly caused by the new CDN rules. 请后端同事确认 /api/v2/session 的响应时间，thanks."
    ),
    "notes": (
        "Meeting with 王经理 on 12 May: the budget (¥120,000) is approved. 下一步：联系供应商，"
        "确认交货时间。Deadline: 2026-06-30. Ask Li Wei about the contract draft, 他下周出差回来。"
    ),
}
SEEN = _by_name(english=_SEEN_ENGLISH, chinese=_SEEN_CHINESE, code=_SEEN_CODE, mixed=_SEEN_MIXED)
OTHER_SCRIPTS = {
    "japanese": "明日は友達と一緒に映画を見に行く予定です。その後、レストランで夕食を食べます。",
    "korean": "내일은 친구와 함께 영화를 보러 갈 예정입니다. 그 다음에는 저녁을 먹을 거예요.",
    "russian": "Завтра мы с друзьями идём в кино, а потом поужинаем в новом ресторане у вокзала.",
    "greek": "Αύριο θα πάμε με τους φίλους μας στον κινηματογράφο και μετά για φαγητό.",
    "arabic": "غدا سنذهب مع أصدقائنا إلى السينما ثم نتناول العشاء في مطعم جديد قرب المحطة.",
    "hindi": "कल हम दोस्तों के साथ फिल्म देखने जाएंगे और फिर स्टेशन के पास खाना खाएंगे।",
    "thai": "พรุ่งนี้เราจะไปดูหนังกับเพื่อน แล้วไปกินข้าวเย็นที่ร้านใหม่ใกล้สถานี",
    "french": "Demain, nous irons au cinéma avec des amis, puis nous dînerons près de la gare.",
    "german": "Morgen gehen wir mit Freunden ins Kino und essen später in der Nähe des Bahnhofs.",
    "vietnamese": "Ngày mai chúng tôi sẽ đi xem phim với bạn bè rồi ăn tối ở nhà hàng mới.",
    "emoji": "😀🎉🚀 🍕🍺 👍👍 🇩🇪 ❤️",
    "numbers": "2026-11-21 23:40:15, 4111 1111 1111 1111, 3.14159265, 00420 777 123 456",
}

_HELD_OUT_ENGLISH = {
    "advice": (
        "If you want to repot an orchid, wait until it has finished flowering. Lift the plant out "
        "gently, shake off the old bark, and cut away any roots that are brown or hollow. A new "
        "pot should be only slightly larger than the last one, because orchids like to feel "
        "crowded. Water it sparingly for the first two weeks and keep it out of direct sun."
    ),
    "complaint": (
        "I ordered a pair of hiking boots from your website on 3 March, order number 5520187, and "
        "what arrived yesterday was a child's raincoat. I've already called twice; the first time "
        "I was put on hold for forty minutes, and the second time nobody could find my account. "
        "Please send the correct item by express delivery or refund the full $149.90."
    ),
    "science": (
        "Coral reefs occupy less than one percent of the ocean floor, yet they shelter roughly a "
        "quarter of all marine species. When seawater becomes too warm, the polyps expel the "
        "microscopic algae that provide both their colour and most of their nutrition, a "
        "phenomenon known as bleaching. Short episodes are survivable; prolonged ones generally "
        "aren't, and recovery may require several decades."
    ),
    "assistant": (
        "Sure! Here are three ideas for a rainy Sunday with two kids:\n\n"
        "1. **Blanket cinema** - build a fort in the living room and let each child pick a film.\n"
        "2. **Kitchen lab** - bake pretzels and talk about why the dough rises.\n"
        "3. **Treasure map** - hide small notes around the flat that lead to a surprise.\n\n"
        "Would you like me to write the notes for the treasure hunt?"
    ),
}
_HELD_OUT_CHINESE = {
    "advice": (
        "给猫洗澡之前，最好先把它的指甲剪短，再准备一盆温水。水不要太深，到它的肚子就够了。动作要轻，"
        "一边洗一边跟它说话，让它放松。洗完马上用毛巾包起来擦干，冬天可以用吹风机，但是声音要小一点。"
    ),
    "complaint": (
        "你好，我上周五在你们店里买了一台咖啡机，订单号是88341207。昨天收到货，打开一看，水箱已经裂了，"
        "而且少了一个滤网。我打了三次客服电话都没人接。请你们尽快换一台新的给我，或者把680元全部退回来。"
    ),
    "science": (
        "候鸟为什么能准确地找到几千公里以外的家？研究人员发现，它们不仅依靠太阳和星星的位置，还能感受到"
        "地球磁场的变化。有些种类甚至会记住沿途的河流、山脉和海岸线。不过，城市的灯光正在干扰这种能力，"
        "每年都有大量鸟类因此迷失方向。"
    ),
    "assistant": (
        "当然可以！下面是三天的杭州行程建议：\n"
        "第一天：上午游西湖，下午去灵隐寺，晚上逛河坊街。\n"
        "第二天：参观浙江省博物馆，然后去龙井村喝茶。\n"
        "第三天：西溪湿地坐船，傍晚返回。\n"
        "如果带老人出行，建议把第二天的步行减少一些。需要我推荐酒店吗？"
    ),
}
_HELD_OUT_CODE = {
    "python-report": '''
import csv
from collections import defaultdict
from pathlib import Path


def hours_by_project(folder: Path) -> dict[str, float]:
    """Sum the hours of every timesheet in a folder."""
    totals: defaultdict[str, float] = defaultdict(float)
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if not row["project"]:
                    continue
                totals[row["project"]] += float(row["hours"] or 0)
    return dict(totals)
''',
    "python-async": """
async def poll(self, interval: float = 0.5) -> AsyncIterator[Event]:
    backoff = interval
    while not self._closed.is_set():
        try:
            response = await self._client.get("/events", params={"after": self.cursor})
            response.raise_for_status()
        except (httpx.TransportError, httpx.HTTPStatusError) as exc:
            logger.warning("poll failed: %s", exc)
            await asyncio.sleep(min(backoff, MAX_BACKOFF))
            backoff *= 2
            continue
        backoff = interval
        for raw in response.json()["events"]:
            self.cursor = raw["id"]
            yield Event(**raw)
        await asyncio.sleep(interval)
""",
    "json-call": (
        '[{"id":"call_7Qe2","type":"function","function":{"name":"search_flights","arguments":'
        '"{\\"from\\": \\"LIS\\", \\"to\\": \\"CPH\\", \\"date\\": \\"2026-07-14\\", '
        '\\"max_price\\": 250, \\"direct\\": true}"}}]'
    ),
    "json-config": """
{
  "name": "weather-station",
  "version": "2.4.1",
  "private": true,
  "scripts": {
    "build": "vite build",
    "lint": "eslint src --max-warnings 0",
    "test": "vitest run --coverage"
  },
  "dependencies": {
    "chart.js": "^4.4.0",
    "date-fns": "~3.6.0"
  },
  "sensors": [
    {"id": 12, "unit": "celsius", "range": [-40, 85], "enabled": true},
    {"id": 13, "unit": "hPa", "range": [300, 1100], "enabled": false}
  ]
}
""",
    "typescript-react": """
export function TagInput({ value, onChange, max = 10 }: TagInputProps) {
  const [draft, setDraft] = useState("");
  const isFull = value.length >= max;

  const commit = () => {
    const tag = draft.trim().toLowerCase();
    if (tag && !value.includes(tag) && !isFull) {
      onChange([...value, tag]);
    }
    setDraft("");
  };

  return (
    <div className="tag-input">
      {value.map((tag) => (
        <span key={tag} onClick={() => onChange(value.filter((t) => t !== tag))}>{tag}</span>
      ))}
      <input value={draft} disabled={isFull} onChange={(e) => setDraft(e.target.value)} />
    </div>
  );
}
""",
    "typescript-cache": """
interface Entry<V> {
  value: V;
  expiresAt: number;
}

export class TtlCache<K, V> {
  private readonly entries = new Map<K, Entry<V>>();

  constructor(private readonly ttlMs: number, private readonly maxSize = 500) {}

  get(key: K): V | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined || entry.expiresAt < Date.now()) {
      this.entries.delete(key);
      return undefined;
    }
    return entry.value;
  }
}
""",
    "sql-schema": """
CREATE TABLE IF NOT EXISTS invoices (
    invoice_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  uuid NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
    issued_on   date NOT NULL DEFAULT current_date,
    due_on      date NOT NULL,
    amount_cents integer NOT NULL CHECK (amount_cents > 0),
    status      text NOT NULL DEFAULT 'open',
    CONSTRAINT due_after_issue CHECK (due_on >= issued_on)
);
CREATE INDEX invoices_open_idx ON invoices (account_id, due_on) WHERE status = 'open';
""",
    "sql-window": """
WITH ranked AS (
    SELECT player_id, season, goals,
           rank() OVER (PARTITION BY season ORDER BY goals DESC) AS place
    FROM season_stats
    WHERE minutes_played > 900
)
UPDATE players p
SET best_place = r.place, updated_at = now()
FROM (SELECT player_id, min(place) AS place FROM ranked GROUP BY player_id) r
WHERE p.id = r.player_id AND (p.best_place IS NULL OR r.place < p.best_place)
RETURNING p.id, p.best_place;
""",
}
HELD_OUT = _by_name(english=_HELD_OUT_ENGLISH, chinese=_HELD_OUT_CHINESE, code=_HELD_OUT_CODE)
